//! What admission webhooks see of each kind of write: operations, subresources, versions.

use crate::ask::Server;
use crate::hook::{Hook, VALIDATING, allow, configuration, patch, webhook, with};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";

async fn configure(server: &Server, webhook: Value) {
    let answer = server.post(VALIDATING, configuration("a", json!([webhook]))).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}})
}

fn deployment() -> Value {
    let (labels, containers) = (json!({"app": "a"}), json!([{"name": "c", "image": "a:1"}]));
    json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}}})
}

/// A request in one line: operation, resource, name, the kinds of the objects, the kind of the options.
fn line(request: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let resource = match request["subResource"].as_str() {
        Some(subresource) => format!("{}/{subresource}", text(&request["resource"]["resource"])),
        None => text(&request["resource"]["resource"]),
    };
    let objects = ["oldObject", "object"].map(|field| text(&request[field]["kind"]));
    let parts = [
        text(&request["operation"]),
        resource,
        text(&request["name"]),
        text(&request["namespace"]),
        objects.join(">"),
        text(&request["options"]["kind"]),
    ];
    parts.join(" ")
}

/// A write, and the one line that a webhook sees of it.
type Reviewed = (&'static str, String, Value, &'static str);

fn subresources() -> [Reviewed; 5] {
    let binding = json!({"metadata": {"name": "a"}, "target": {"name": "n"}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}});
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let status = json!({"status": {"phase": "Running"}});
    let scale = json!({"metadata": {"name": "d"}, "spec": {"replicas": 3}});
    let line = "UPDATE deployments/scale d default Scale>Scale UpdateOptions";
    [
        (
            "PATCH",
            format!("{PODS}/a/status"),
            status,
            "UPDATE pods/status a default Pod>Pod UpdateOptions",
        ),
        ("PUT", format!("{DEPLOYMENTS}/d/scale"), scale, line),
        (
            "POST",
            format!("{PODS}/a/binding"),
            binding,
            "CREATE pods/binding a default ->Binding CreateOptions",
        ),
        (
            "POST",
            format!("{PODS}/b/eviction"),
            eviction,
            "CREATE pods/eviction b default ->Eviction CreateOptions",
        ),
        (
            "POST",
            format!("{ACCOUNTS}/x/token"),
            token,
            "CREATE serviceaccounts/token x default ->TokenRequest CreateOptions",
        ),
    ]
}

fn objects() -> [Reviewed; 4] {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let namespace = json!({"metadata": {"name": "n"}});
    let collection = format!("{DEPLOYMENTS}?labelSelector=!x");
    [
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
            review,
            "CREATE selfsubjectaccessreviews - - ->SelfSubjectAccessReview CreateOptions",
        ),
        (
            "POST",
            "/api/v1/namespaces".to_owned(),
            namespace,
            "CREATE namespaces n n ->Namespace CreateOptions",
        ),
        ("DELETE", format!("{PODS}/a"), Value::Null, "DELETE pods a default Pod>- DeleteOptions"),
        (
            "DELETE",
            collection,
            Value::Null,
            "DELETE deployments - default Deployment>- DeleteOptions",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_write_is_reviewed() {
    let server = Server::start().await;
    let account = json!({"metadata": {"name": "x"}});
    for (path, object) in [
        (PODS, pod("a")),
        (PODS, pod("b")),
        (DEPLOYMENTS, deployment()),
        (ACCOUNTS, account),
    ] {
        assert_eq!(server.post(path, object).await.code, 201);
    }
    let hook = Hook::admitting(&server, "a", allow);
    configure(&server, webhook("a", json!(["*/*"]))).await;
    for (method, path, body, expected) in subresources().into_iter().chain(objects()) {
        let answer = match method {
            "PATCH" => server.patch("merge-patch+json", &path, body).await,
            "PUT" => server.put(&path, body).await,
            "POST" => server.post(&path, body).await,
            _ => server.delete(&path, body).await,
        };
        assert!(answer.code < 300, "{path}: {}", answer.body);
        assert_eq!(hook.requests().iter().map(line).collect::<Vec<_>>(), [expected], "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_refused_and_cannot_be_patched() {
    let server = Server::start().await;
    assert_eq!(server.post(PODS, pod("a")).await.code, 201);
    let hook = Hook::admitting(&server, "a", |_| json!({"allowed": false}));
    configure(&server, webhook("a", json!(["pods"]))).await;
    assert_eq!(server.delete(&format!("{PODS}/a"), Value::Null).await.code, 400);
    drop(hook);
    server.delete(&format!("{VALIDATING}/a"), Value::Null).await;
    let _hook = Hook::admitting(&server, "a", |_| patch(json!([{"op": "add", "path": "/x", "value": 1}])));
    let mutating = crate::hook::MUTATING;
    server.post(mutating, configuration("a", json!([webhook("a", json!(["pods"]))]))).await;

    let refused = server.delete(&format!("{PODS}/a"), Value::Null).await;

    let why = "Internal error occurred: admission webhook \"a.example.dev\" attempted to modify the object, which is not \
               supported for this operation";
    assert_eq!((refused.code, &refused.body["message"]), (500, &json!(why)));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_sees_and_changes_the_version_that_it_matches() {
    let server = Server::start().await;
    let rules = json!([{"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"]}]);
    let equivalent = with(webhook("a", json!([])), json!({"rules": rules}));
    let hook = Hook::admitting(&server, "a", |_| {
        patch(json!([{"op": "replace", "path": "/spec/metrics/0/resource/target/averageUtilization", "value": 55}]))
    });
    server.post(crate::hook::MUTATING, configuration("a", json!([equivalent.clone()]))).await;
    let autoscaler = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80,
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});

    let created = server.post(AUTOSCALERS, autoscaler.clone()).await;

    assert_eq!(created.code, 201, "{}", created.body);
    assert_eq!(created.body["spec"]["targetCPUUtilizationPercentage"], 55);
    let request = &hook.requests()[0];
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v2"), &json!("v1"))
    );
    assert_eq!(
        (&request["resource"]["version"], &request["object"]["apiVersion"]),
        (&json!("v2"), &json!("autoscaling/v2"))
    );
    assert_eq!(request["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);

    let exact = with(equivalent, json!({"matchPolicy": "Exact"}));
    server
        .patch("merge-patch+json", &format!("{}/a", crate::hook::MUTATING), json!({"webhooks": [exact]}))
        .await;
    let unseen = server.put(&format!("{AUTOSCALERS}/h"), autoscaler).await;
    assert_eq!((unseen.code, hook.requests().len()), (200, 0), "{}", unseen.body);
}
