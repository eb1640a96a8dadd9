//! ResourceQuotas: what is charged, refused and counted, also by many clients at a time.

use crate::ask::Server;
use crate::racing::Interrupted;
use flyball_store::Store;
use futures::future::join_all;
use serde_json::{Value, json};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A quota that has been counted, as by the controller of a cluster.
async fn quota(server: &Server, hard: Value, used: Value) {
    let mut quota = server.post(QUOTAS, json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await.body;
    quota["status"] = json!({"hard": hard, "used": used});
    let counted = server.put(&format!("{QUOTAS}/q/status"), quota).await;
    assert_eq!(counted.code, 200, "{}", counted.body);
}

async fn used(server: &Server) -> Value {
    server.get(&format!("{QUOTAS}/q")).await.body["status"]["used"].clone()
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "a:1", "resources": resources}]}})
}

#[tokio::test(start_paused = true)]
async fn a_create_is_charged_and_then_refused() {
    let server = Server::start().await;
    quota(
        &server,
        json!({"requests.cpu": "1", "pods": "5"}),
        json!({"requests.cpu": "0", "pods": "0"}),
    )
    .await;

    assert_eq!(server.post(PODS, pod("a", "600m")).await.code, 201);
    assert_eq!(used(&server).await, json!({"pods": "1", "requests.cpu": "600m"}));
    let refused = server.post(PODS, pod("b", "600m")).await;

    let message = "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, \
        limited: requests.cpu=1";
    assert_eq!((refused.code, refused.body["message"].as_str()), (403, Some(message)));
    assert_eq!(
        used(&server).await,
        json!({"pods": "1", "requests.cpu": "600m"}),
        "a refused pod is not charged"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_checked_and_not_charged() {
    let server = Server::start().await;
    quota(&server, json!({"configmaps": "1"}), json!({"configmaps": "0"})).await;

    assert_eq!(server.post(&format!("{MAPS}?dryRun=All"), map("a")).await.code, 201);
    assert_eq!(used(&server).await, json!({"configmaps": "0"}));
    assert_eq!(server.post(MAPS, map("a")).await.code, 201);
    assert_eq!(server.post(&format!("{MAPS}?dryRun=All"), map("b")).await.code, 403);
}

/// Sixty-four clients create objects at the same time; the quota has room for twenty.
async fn race(store: Store) {
    let server = Server::over(store).await;
    quota(&server, json!({"configmaps": "20"}), json!({"configmaps": "0"})).await;

    let creates = (0..64).map(|n| {
        let server = server.clone();
        tokio::spawn(async move { server.post(MAPS, map(&format!("m{n}"))).await.code })
    });
    let codes: Vec<u16> = join_all(creates).await.into_iter().map(Result::unwrap).collect();

    let created = codes.iter().filter(|code| **code == 201).count();
    assert_eq!((created, codes.iter().filter(|code| **code == 403).count()), (20, 44), "{codes:?}");
    assert_eq!(used(&server).await, json!({"configmaps": "20"}));
    let stored = server.get(MAPS).await.body["items"].as_array().unwrap().len();
    assert_eq!(stored, 20, "what is stored is what was charged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_do_not_exceed_a_quota_in_memory() {
    race(Store::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_do_not_exceed_a_quota_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    race(Store::open(directory.path()).await.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_created_meanwhile_is_noticed() {
    let (store, server, other) = Interrupted::servers().await;
    store.before("core/configmaps/default/a", async move {
        quota(&other, json!({"configmaps": "1"}), json!({"configmaps": "1"})).await;
    });

    assert_eq!(server.post(MAPS, map("a")).await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_count_that_misses_an_object_is_refused() {
    let (store, server, other) = Interrupted::servers().await;
    let quota = server
        .post(QUOTAS, json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}))
        .await;
    let mut counted = quota.body;
    counted["status"] = json!({"hard": {"configmaps": "1"}, "used": {"configmaps": "0"}});
    // The count was made before the object is stored, and is written after it.
    store.before("core/resourcequotas/default/q", async move {
        assert_eq!(other.post(MAPS, map("a")).await.code, 201);
    });

    assert_eq!(server.put(&format!("{QUOTAS}/q/status"), counted).await.code, 409);
}

#[tokio::test(start_paused = true)]
async fn an_update_is_charged_for_what_it_adds() {
    let server = Server::start().await;
    let services = "/api/v1/namespaces/default/services";
    let ports = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": ports}});
    let mut service = server.post(services, service).await.body;
    let hard = json!({"services.nodeports": "1", "services": "1"});
    quota(&server, hard, json!({"services.nodeports": "0", "services": "1"})).await;

    service["spec"]["type"] = "NodePort".into();
    let refused = server.put(&format!("{services}/s"), service.clone()).await;
    let message = refused.body["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("requested: services.nodeports=2, used: services.nodeports=0"),
        "{message}"
    );
    service["spec"]["ports"] = json!([{"name": "a", "port": 1}]);
    assert_eq!(server.put(&format!("{services}/s"), service).await.code, 200);
    assert_eq!(used(&server).await, json!({"services": "1", "services.nodeports": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_leaves_nothing_behind() {
    let store = Store::memory();
    let server = Server::over(store.clone()).await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "short"}})).await;
    let path = "/api/v1/namespaces/short/resourcequotas";
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    assert_eq!(server.post(path, quota).await.code, 201);
    assert!(store.get("flyball/quotas/short").await.unwrap().is_some());

    server.delete(&format!("{path}/q"), Value::Null).await;
    let mut namespace = server.delete("/api/v1/namespaces/short", Value::Null).await.body;
    namespace["spec"]["finalizers"] = json!([]);
    assert_eq!(server.put("/api/v1/namespaces/short/finalize", namespace).await.code, 200);

    assert_eq!(server.get("/api/v1/namespaces/short").await.code, 404);
    assert!(store.get("flyball/quotas/short").await.unwrap().is_none());
}
