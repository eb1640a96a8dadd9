//! What built-in kinds have that others have not.

use crate::ask::Server;
use serde_json::{Value, json};
use std::collections::HashSet;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
}

#[tokio::test(start_paused = true)]
async fn no_two_services_share_an_address_or_a_port() {
    let server = Server::start().await;
    let mut addresses = HashSet::new();
    let mut ports = HashSet::new();
    for number in 0..50 {
        let created = server.post(SERVICES, service(&format!("s{number}"))).await.body;
        assert!(addresses.insert(created["spec"]["clusterIP"].as_str().unwrap().to_owned()));
        assert!(ports.insert(created["spec"]["ports"][0]["nodePort"].as_i64().unwrap()));
    }

    let taken = addresses.iter().next().unwrap();
    let mut copy = service("copy");
    copy["spec"]["clusterIP"] = json!(taken);
    let refused = server.post(SERVICES, copy.clone()).await;
    assert_eq!(refused.code, 422);
    let why = format!("failed to allocate IP {taken}: provided IP is already allocated");
    assert!(refused.body["message"].as_str().unwrap().ends_with(&why), "{}", refused.body["message"]);

    server.delete(SERVICES, json!(null)).await;
    assert_eq!(server.post(SERVICES, copy).await.code, 201, "a deleted service gives its address back");
}

#[tokio::test(start_paused = true)]
async fn a_service_keeps_its_address_through_updates() {
    let server = Server::start().await;
    let mut service = service("web");
    service["spec"]["ports"] = json!([{"name": "a", "port": 80}]);
    let created = server.post(SERVICES, service.clone()).await.body;

    let mut changed = service;
    changed["spec"]["ports"] = json!([{"name": "a", "port": 8080}, {"name": "b", "port": 81}]);
    let updated = server.put(&format!("{SERVICES}/web"), changed).await.body;

    assert_eq!(updated["spec"]["clusterIP"], created["spec"]["clusterIP"]);
    assert_eq!(updated["spec"]["ports"][0]["nodePort"], created["spec"]["ports"][0]["nodePort"]);
    assert!(updated["spec"]["ports"][1]["nodePort"].is_number());
}

#[tokio::test(start_paused = true)]
async fn an_event_is_the_same_in_both_groups() {
    let server = Server::start().await;
    let event = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Greet",
        "reason": "Greeted", "type": "Normal", "note": "hello", "reportingController": "example.dev/greeter",
        "reportingInstance": "a", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}});

    assert_eq!(server.post("/apis/events.k8s.io/v1/namespaces/default/events", event).await.code, 201);

    let old = server
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp")
        .await
        .body;
    assert_eq!(old["items"][0]["message"], "hello");
    let path = "/api/v1/namespaces/default/events/e";
    server.patch("merge-patch+json", path, json!({"message": "hello again"})).await;
    let new = server.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.body;
    assert_eq!((&new["note"], &new["regarding"]["name"]), (&json!("hello again"), &json!("p")));
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_is_the_same_in_both_versions() {
    let server = Server::start().await;
    let spec = json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}});
    let path = |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");

    let created = server.post(&path("v1"), json!({"metadata": {"name": "a"}, "spec": spec})).await;
    assert_eq!((created.code, &created.body["spec"]["targetCPUUtilizationPercentage"]), (201, &json!(50)));
    let new = server.get(&format!("{}/a", path("v2"))).await.body;

    assert_eq!(new["apiVersion"], "autoscaling/v2");
    assert_eq!(new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
}

#[tokio::test(start_paused = true)]
async fn a_deployments_selector_fits_its_template_and_stays() {
    let server = Server::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = |selector: &str| {
        let template =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": selector}}, "template": template}})
    };

    let odd = server.post(path, deployment("db")).await;
    assert_eq!(
        (odd.code, odd.body["details"]["causes"][0]["field"].as_str()),
        (422, Some("spec.template.metadata.labels"))
    );
    server.post(path, deployment("web")).await;
    let changed = server
        .patch(
            "merge-patch+json",
            &format!("{path}/web"),
            json!({"spec": {"selector": {"matchLabels": {"tier": "x"}}}}),
        )
        .await;

    assert_eq!(changed.code, 422);
    assert!(
        changed.body["message"].as_str().unwrap().contains("field is immutable"),
        "{}",
        changed.body["message"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_secret_takes_plain_text_and_never_shows_it() {
    let server = Server::start().await;

    let created = server
        .post(
            "/api/v1/namespaces/default/secrets",
            json!({"metadata": {"name": "a"}, "stringData": {"k": "v"}}),
        )
        .await
        .body;

    assert_eq!(
        (&created["data"]["k"], &created["type"], &created["stringData"]),
        (&json!("dg=="), &json!("Opaque"), &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn an_eviction_deletes_a_pod_unless_a_budget_holds_it() {
    let server = Server::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}});
        server.post(pods, pod).await;
        server
            .patch(
                "merge-patch+json",
                &format!("{pods}/{name}/status"),
                json!({"status": {"phase": "Running"}}),
            )
            .await;
    }
    let budget =
        json!({"metadata": {"name": "held"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "b"}}}});
    server.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget).await;
    let evict = async |name: &str| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        server.post(&format!("{pods}/{name}/eviction"), eviction).await.code
    };

    assert_eq!((evict("a").await, evict("b").await, evict("c").await), (201, 429, 404));
    assert_eq!(
        (server.get(&format!("{pods}/a")).await.code, server.get(&format!("{pods}/b")).await.code),
        (404, 200)
    );
}

/// A NodePort Service with ports 1 to `count`.
fn wide(name: &str, count: usize) -> Value {
    let ports: Vec<Value> = (1..=count).map(|port| json!({"name": format!("p{port}"), "port": port})).collect();
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}})
}

/// Runs a test in a thread of its own: a request that never returns fails the test instead of hanging it.
fn within_a_minute(test: impl Future<Output = ()> + Send + 'static) {
    let (done, ended) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
        done.send(()).unwrap();
    });
    if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(std::time::Duration::from_secs(60)) {
        panic!("the server does not answer");
    }
    test.join().unwrap();
}

const RANGE_IS_FULL: &str = "Internal error occurred: failed to allocate a nodePort: range is full";

#[test]
fn a_service_that_needs_more_ports_than_there_are_is_refused() {
    within_a_minute(async {
        let server = Server::start().await;

        let refused = server.post(SERVICES, wide("big", 2769)).await;

        assert_eq!((refused.code, refused.body["message"].as_str()), (500, Some(RANGE_IS_FULL)));
    });
}

#[test]
fn the_last_node_port_is_found_and_the_next_service_is_refused() {
    within_a_minute(async {
        let server = Server::start().await;
        assert_eq!(server.post(SERVICES, wide("many", 2760)).await.code, 201);

        let last = server.post(SERVICES, wide("last", 8)).await;
        assert_eq!(last.code, 201, "{}", last.body["message"]);
        let refused = server.post(SERVICES, wide("none", 1)).await;
        assert_eq!((refused.code, refused.body["message"].as_str()), (500, Some(RANGE_IS_FULL)));
        let grown = server.put(&format!("{SERVICES}/last"), wide("last", 9)).await;
        assert_eq!((grown.code, grown.body["message"].as_str()), (500, Some(RANGE_IS_FULL)));

        server.delete(&format!("{SERVICES}/many"), json!(null)).await;
        assert_eq!(server.post(SERVICES, wide("none", 1)).await.code, 201);
    });
}

#[tokio::test(start_paused = true)]
async fn ports_of_one_number_share_a_node_port() {
    let server = Server::start().await;
    let ports = json!([{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]);
    let dns = json!({"metadata": {"name": "dns"}, "spec": {"type": "NodePort", "ports": ports}});

    let created = server.post(SERVICES, dns).await.body;

    let ports = &created["spec"]["ports"];
    assert!(ports[0]["nodePort"].is_number());
    assert_eq!(ports[0]["nodePort"], ports[1]["nodePort"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_its_type_releases_its_node_ports() {
    let server = Server::start().await;
    let external =
        json!({"spec": {"type": "ExternalName", "externalName": "a.b", "clusterIP": null, "clusterIPs": null}});
    let internal = json!({"spec": {"type": "ClusterIP"}});
    for (name, patch) in [("external", external), ("internal", internal)] {
        let created = server.post(SERVICES, service(name)).await.body;
        let port = created["spec"]["ports"][0]["nodePort"].clone();

        let path = format!("{SERVICES}/{name}");
        let changed = server.patch("merge-patch+json", &path, patch).await;

        assert_eq!(changed.code, 200, "{}", changed.body);
        assert_eq!(changed.body["spec"]["ports"][0].get("nodePort"), None, "{name}");
        let mut other = service(&format!("after-{name}"));
        other["spec"]["ports"][0]["nodePort"] = port;
        let other = server.post(SERVICES, other).await;
        assert_eq!(other.code, 201, "{}", other.body["message"]);
    }
}

#[tokio::test(start_paused = true)]
async fn limit_ranges_give_pods_their_resources_and_refuse_claims() {
    let server = Server::start().await;
    let limits = json!([
        {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]);
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": limits}});
    let created = server.post("/api/v1/namespaces/default/limitranges", range).await;
    assert_eq!(created.headers.get("warning"), None);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, resources: Value| {
        let container = json!({"name": "c", "image": "i", "resources": resources});
        json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
    };

    let filled = server.post(pods, pod("a", json!({}))).await.body;
    let refused = server.post(pods, pod("b", json!({"limits": {"cpu": "3"}}))).await;
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}});
    let claim = server.post("/api/v1/namespaces/default/persistentvolumeclaims", claim).await;

    assert_eq!(
        filled["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})
    );
    let why = "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3";
    assert_eq!((refused.code, &refused.body["message"]), (403, &json!(why)));
    assert_eq!(claim.code, 403, "{}", claim.body);
}
