//! Evictions and the PodDisruptionBudgets that they are charged to.

use crate::ask::{Answer, Server};
use crate::racing::Interrupted;
use flyball_store::Store;
use futures::future::join_all;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A running pod that a budget selects.
async fn running(server: &Server, name: &str, ready: bool) {
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "a:1"}]});
    let mut pod = server
        .post(PODS, json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}))
        .await
        .body;
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    pod["status"] = json!({"phase": "Running", "conditions": [condition]});
    let written = server.put(&format!("{PODS}/{name}/status"), pod).await;
    assert_eq!(written.code, 200, "{}", written.body);
}

async fn budget(server: &Server, spec: Value, status: Value) {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    let budget = json!({"metadata": {"name": "b"}, "spec": spec});
    let mut budget = server.post(BUDGETS, budget).await.body;
    budget["status"] = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2,
        "desiredHealthy": 1, "expectedPods": 2});
    for (field, value) in status.as_object().unwrap() {
        budget["status"][field] = value.clone();
    }
    let written = server.put(&format!("{BUDGETS}/b/status"), budget).await;
    assert_eq!(written.code, 200, "{}", written.body);
}

async fn evict(server: &Server, name: &str, query: &str) -> Answer {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    server.post(&format!("{PODS}/{name}/eviction{query}"), eviction).await
}

fn cause(answer: &Answer) -> (u16, &str, &str) {
    let cause = &answer.body["details"]["causes"][0];
    (
        answer.code,
        cause["reason"].as_str().unwrap_or_default(),
        cause["message"].as_str().unwrap_or_default(),
    )
}

#[tokio::test(start_paused = true)]
async fn concurrent_evictions_do_not_exceed_the_budget() {
    let (store, server, other) = Interrupted::servers().await;
    running(&server, "a", true).await;
    running(&server, "b", true).await;
    budget(&server, json!({"minAvailable": 1}), json!({"disruptionsAllowed": 1})).await;
    store.before("core/pods/default/a", async move {
        assert_eq!(evict(&other, "b", "").await.code, 201);
    });

    let refused = evict(&server, "a", "").await;

    let message = "The disruption budget b does not allow evicting pods currently";
    assert_eq!(cause(&refused), (429, "DisruptionBudget", message));
    let budget = server.get(&format!("{BUDGETS}/b")).await.body;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    let disrupted: Vec<_> = budget["status"]["disruptedPods"].as_object().unwrap().keys().collect();
    assert_eq!(disrupted, ["b"]);
    assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
    assert_eq!(server.get(&format!("{PODS}/a")).await.body["metadata"].get("deletionTimestamp"), None);
    let evicted = server.get(&format!("{PODS}/b")).await.body;
    assert!(evicted["metadata"]["deletionTimestamp"].is_string());
    let conditions = evicted["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|it| it["type"] == "DisruptionTarget" && it["reason"] == "EvictionByEvictionAPI")
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_without_disruptions_refuses() {
    let server = Server::start().await;
    running(&server, "a", true).await;
    budget(&server, json!({"minAvailable": 2}), json!({"desiredHealthy": 2, "currentHealthy": 2})).await;

    let refused = evict(&server, "a", "").await;

    let message = "The disruption budget b needs 2 healthy pods and has 2 currently";
    assert_eq!(cause(&refused), (429, "DisruptionBudget", message));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_not_processed_yet_asks_to_retry() {
    let server = Server::start().await;
    running(&server, "a", true).await;
    budget(
        &server,
        json!({"minAvailable": 1}),
        json!({"disruptionsAllowed": 1, "observedGeneration": 0}),
    )
    .await;

    let refused = evict(&server, "a", "").await;

    let message = "The disruption budget b is still being processed by the server.";
    assert_eq!(cause(&refused), (429, "DisruptionBudget", message));
    assert_eq!(refused.headers["retry-after"], "10");
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_ready_go_as_the_policy_says() {
    for (spec, status, code) in [
        (json!({"minAvailable": 1}), json!({}), 201),
        (json!({"minAvailable": 1}), json!({"currentHealthy": 0}), 429),
        (
            json!({"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
            json!({"currentHealthy": 0}),
            201,
        ),
    ] {
        let server = Server::start().await;
        running(&server, "a", false).await;
        budget(&server, spec.clone(), status).await;

        let answer = evict(&server, "a", "").await;

        assert_eq!(answer.code, code, "{spec}: {}", answer.body);
        let budget = server.get(&format!("{BUDGETS}/b")).await.body;
        assert_eq!(budget["status"].get("disruptedPods"), None, "the budget is not charged");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_becomes_ready_is_not_evicted_as_unhealthy() {
    let (store, server, other) = Interrupted::servers().await;
    running(&server, "a", false).await;
    budget(&server, json!({"minAvailable": 1}), json!({})).await;
    store.before("core/pods/default/a", async move {
        let mut pod = other.get(&format!("{PODS}/a")).await.body;
        pod["status"]["conditions"][0]["status"] = json!("True");
        assert_eq!(other.put(&format!("{PODS}/a/status"), pod).await.code, 200);
    });

    assert_eq!(evict(&server, "a", "").await.code, 429);
    assert_eq!(server.get(&format!("{PODS}/a")).await.body["metadata"].get("deletionTimestamp"), None);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_charges_nothing() {
    let server = Server::start().await;
    running(&server, "a", true).await;
    budget(&server, json!({"minAvailable": 1}), json!({"disruptionsAllowed": 1})).await;

    assert_eq!(evict(&server, "a", "?dryRun=All").await.code, 201);

    assert_eq!(server.get(&format!("{BUDGETS}/b")).await.body["status"]["disruptionsAllowed"], 1);
    assert_eq!(server.get(&format!("{PODS}/a")).await.body["metadata"].get("deletionTimestamp"), None);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_terminating_namespace_are_neither_bound_nor_evicted() {
    let server = Server::start().await;
    let pods = "/api/v1/namespaces/short/pods";
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "short"}})).await;
    server.account("short").await;
    let spec = json!({"containers": [{"name": "c", "image": "a:1"}]});
    assert_eq!(server.post(pods, json!({"metadata": {"name": "a"}, "spec": spec})).await.code, 201);
    assert_eq!(server.delete("/api/v1/namespaces/short", Value::Null).await.code, 200);

    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    let binding = json!({"metadata": {"name": "a"}, "target": {"name": "n"}});
    for refused in [
        server.post(&format!("{pods}/a/eviction"), eviction).await,
        server.post(&format!("{pods}/a/binding"), binding.clone()).await,
        server.post("/api/v1/namespaces/short/bindings", binding).await,
    ] {
        assert_eq!(cause(&refused).0, 403, "{}", refused.body);
        assert_eq!(cause(&refused).1, "NamespaceTerminating");
    }
    assert_eq!(server.get(&format!("{pods}/a")).await.body["spec"].get("nodeName"), None);
}

/// Sixty-four clients evict sixty-four pods at the same time; the budget permits ten.
async fn race(store: Store) {
    let server = Server::over(store).await;
    for n in 0..64 {
        running(&server, &format!("p{n}"), true).await;
    }
    let status = json!({"disruptionsAllowed": 10, "currentHealthy": 64, "desiredHealthy": 54, "expectedPods": 64});
    budget(&server, json!({"minAvailable": 54}), status).await;

    let evictions = (0..64).map(|n| {
        let server = server.clone();
        tokio::spawn(async move { evict(&server, &format!("p{n}"), "").await.code })
    });
    let codes: Vec<u16> = join_all(evictions).await.into_iter().map(Result::unwrap).collect();

    let evicted = codes.iter().filter(|code| **code == 201).count();
    assert_eq!((evicted, codes.iter().filter(|code| **code == 429).count()), (10, 54), "{codes:?}");
    let pods = server.get(PODS).await.body;
    let left = pods["items"].as_array().unwrap().iter();
    let left = left.filter(|pod| pod["metadata"].get("deletionTimestamp").is_none()).count();
    assert_eq!(left, 54, "the budget keeps its minimum");
    let budget = server.get(&format!("{BUDGETS}/b")).await.body;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_evictions_keep_the_minimum_of_a_budget_in_memory() {
    race(Store::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_evictions_keep_the_minimum_of_a_budget_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    race(Store::open(directory.path()).await.unwrap()).await;
}
