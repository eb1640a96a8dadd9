//! What kinds know of themselves: selectable fields and the preparation of a status.

use crate::ask::Server;
use serde_json::{Value, json};

async fn selected(server: &Server, path: &str, selector: &str) -> Vec<String> {
    let selector = selector.replace('=', "%3D").replace('!', "%21");
    let answer = server.get(&format!("{path}?fieldSelector={selector}")).await;
    assert_eq!(answer.code, 200, "{path} {selector}: {}", answer.body);
    let items = answer.body["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}})
}

#[tokio::test(start_paused = true)]
async fn an_absent_field_is_selected_by_the_zero_value_of_its_type() {
    let server = Server::start().await;
    server.post("/api/v1/nodes", json!({"metadata": {"name": "free"}})).await;
    let cordoned = json!({"metadata": {"name": "cordoned"}, "spec": {"unschedulable": true}});
    server.post("/api/v1/nodes", cordoned).await;
    server.post("/api/v1/namespaces/default/pods", pod("a")).await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "a:1"}]}});
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
    let created = server.post("/apis/batch/v1/namespaces/default/jobs", job).await;
    assert_eq!(created.code, 201, "{}", created.body);

    let pods = "/api/v1/namespaces/default/pods";
    for (path, selector, names) in [
        ("/api/v1/nodes", "spec.unschedulable=false", vec!["free"]),
        ("/api/v1/nodes", "spec.unschedulable=true", vec!["cordoned"]),
        ("/api/v1/nodes", "spec.unschedulable!=true", vec!["free"]),
        (pods, "spec.hostNetwork=false", vec!["a"]),
        (pods, "spec.hostNetwork=true", vec![]),
        (pods, "spec.nodeName=", vec!["a"]),
        (pods, "status.podIPs=", vec!["a"]),
        ("/apis/batch/v1/namespaces/default/jobs", "status.successful=0", vec!["j"]),
    ] {
        assert_eq!(selected(&server, path, selector).await, names, "{path} {selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_are_selected_by_the_names_of_their_own_version_only() {
    let server = Server::start().await;
    let event = json!({"metadata": {"name": "e"}, "reason": "Greeted", "type": "Normal", "message": "hello",
        "reportingComponent": "greeter", "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
    let created = server.post("/api/v1/namespaces/default/events", event).await;
    assert_eq!(created.code, 201, "{}", created.body);

    let (core, events) = ("/api/v1/events", "/apis/events.k8s.io/v1/events");
    assert_eq!(selected(&server, core, "involvedObject.name=p").await, ["e"]);
    assert_eq!(
        selected(&server, core, "source=greeter").await,
        ["e"],
        "the reporting component stands for a source"
    );
    assert_eq!(selected(&server, events, "regarding.name=p").await, ["e"]);
    assert_eq!(selected(&server, events, "reportingController=greeter").await, ["e"]);
    for (path, field) in [
        (events, "involvedObject.name"),
        ("/api/v1/namespaces", "name"),
        ("/api/v1/nodes", "metadata.namespace"),
    ] {
        let refused = server.get(&format!("{path}?fieldSelector={field}%3Dp")).await;
        assert_eq!(refused.code, 400, "{path} {field}");
        assert_eq!(refused.body["message"], format!("field label not supported: {field}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_write_keeps_the_metadata_that_its_kind_protects() {
    let server = Server::start().await;
    let mut created = server.post("/api/v1/namespaces/default/pods", pod("a")).await.body;
    created["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    created["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]);
    created["metadata"]["labels"] = json!({"a": "b"});
    created["status"] = json!({"phase": "Running"});

    let written = server.put("/api/v1/namespaces/default/pods/a/status", created).await;

    assert_eq!(written.code, 200, "{}", written.body);
    let metadata = &written.body["metadata"];
    assert_eq!((metadata.get("deletionTimestamp"), metadata.get("ownerReferences")), (None, None));
    assert_eq!(metadata["labels"], json!({"a": "b"}), "labels of pods are not protected");
    assert_eq!(written.body["status"]["phase"], "Running");
    assert_eq!(written.body["status"]["qosClass"], "BestEffort");

    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let mut claim = server.post(claims, json!({"metadata": {"name": "c"}, "spec": {}})).await.body;
    claim["metadata"]["labels"] = json!({"a": "b"});
    let written = server.put(&format!("{claims}/c/status"), claim).await;
    assert_eq!(written.code, 200, "{}", written.body);
    assert_eq!(written.body["metadata"].get("labels"), None);
}
