//! Which writes rules and selectors match.

use super::*;
use crate::admission::Options;
use crate::authn::user::User;
use crate::endpoints::Subresource;
use crate::request::context::{RequestContext, ResourceRequest};
use crate::request::info::{RequestInfo, ResourceInfo};
use crate::request::options::WriteOptions;
use crate::server::ApiServer;
use flyball_store::Store;
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::json;

/// A write: method, path, subresource and object.
struct Case {
    request: ResourceRequest,
    options: WriteOptions,
    operation: Operation,
    subresource: Subresource,
    object: Value,
}

impl Case {
    fn new(server: &ApiServer, operation: Operation, path: &str, object: Value) -> Case {
        let method = match operation {
            Operation::Create => Method::POST,
            Operation::Update => Method::PUT,
            Operation::Delete => Method::DELETE,
        };
        let info = RequestInfo::read(&method, &path.parse::<Uri>().unwrap());
        let target: ResourceInfo = info.resource.clone().unwrap();
        let served = server.registry().served();
        let kind = served.find(&target.group, &target.version, &target.resource).unwrap().clone();
        let subresource = match target.subresource.as_deref() {
            Some("scale") => Subresource::Scale,
            Some("status") => Subresource::Status,
            _ => Subresource::Whole,
        };
        let context = RequestContext::new(server.clone(), info, HeaderValue::from_static("id"));
        let options = WriteOptions::create(&context.info.query, &HeaderMap::new()).unwrap();
        let request = ResourceRequest::new(kind, target, context, HeaderMap::new());
        Case { request, options, operation, subresource, object }
    }

    /// The version of the resource by which criteria match.
    async fn matched(&self, criteria: &Value) -> Result<Option<String>> {
        let mut attributes = Attributes::new(&self.request, self.operation, Options::Write(&self.options));
        attributes.subresource = self.subresource;
        attributes.object = self.object.clone();
        let found = MatchCriteria::of_webhook(criteria).matches(&attributes).await?;
        Ok(found.map(|it| it.kind.resource.api_version()))
    }
}

async fn server() -> ApiServer {
    ApiServer::start(Store::memory()).await.unwrap()
}

fn rule(operation: &str, group: &str, version: &str, resource: &str, scope: &str) -> Value {
    json!({"operations": [operation], "apiGroups": [group], "apiVersions": [version], "resources": [resource],
        "scope": scope})
}

fn criteria(rules: Value) -> Value {
    json!({"rules": rules, "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}})
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/d/scale";

#[tokio::test(start_paused = true)]
async fn rules_match_by_operation_group_version_resource_and_scope() {
    let server = server().await;
    let pod = Case::new(&server, Operation::Create, PODS, json!({}));
    let scale = Case::new(&server, Operation::Update, SCALE, json!({}));
    let namespace = Case::new(&server, Operation::Create, "/api/v1/namespaces", json!({"metadata": {"name": "n"}}));
    for (case, rule, expected) in [
        (&pod, rule("CREATE", "", "v1", "pods", "*"), true),
        (&pod, rule("*", "*", "*", "*", "Namespaced"), true),
        (&pod, rule("*", "*", "*", "*/*", "*"), true),
        (&pod, rule("UPDATE", "", "v1", "pods", "*"), false),
        (&pod, rule("CONNECT", "", "v1", "pods", "*"), false),
        (&pod, rule("CREATE", "apps", "v1", "pods", "*"), false),
        (&pod, rule("CREATE", "", "v2", "pods", "*"), false),
        (&pod, rule("CREATE", "", "v1", "pods/*", "*"), true),
        (&pod, rule("CREATE", "", "v1", "pods/status", "*"), false),
        (&pod, rule("CREATE", "", "v1", "pods", "Cluster"), false),
        (&scale, rule("UPDATE", "apps", "v1", "deployments", "*"), false),
        (&scale, rule("UPDATE", "apps", "v1", "deployments/scale", "*"), true),
        (&scale, rule("UPDATE", "apps", "v1", "*/scale", "*"), true),
        (&scale, rule("UPDATE", "apps", "v1", "deployments/*", "*"), true),
        (&scale, rule("UPDATE", "apps", "v1", "*", "*"), false),
        (&namespace, rule("CREATE", "", "v1", "namespaces", "Cluster"), true),
        (&namespace, rule("CREATE", "", "v1", "namespaces", "Namespaced"), false),
    ] {
        let found = case.matched(&criteria(json!([rule.clone()]))).await.unwrap();
        assert_eq!(found.is_some(), expected, "{rule}");
    }
}

#[tokio::test(start_paused = true)]
async fn resource_names_match_the_name_of_the_request() {
    let server = server().await;
    let pod = Case::new(&server, Operation::Update, &format!("{PODS}/a"), json!({"metadata": {"name": "a"}}));
    for (names, expected) in [(json!(["a", "b"]), true), (json!(["b"]), false), (json!([]), true)] {
        let mut rule = rule("*", "*", "*", "*", "*");
        rule["resourceNames"] = names.clone();
        let found = pod.matched(&criteria(json!([rule]))).await.unwrap();
        assert_eq!(found.is_some(), expected, "{names}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_equivalent_resource_matches_unless_the_policy_is_exact() {
    let server = server().await;
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let autoscaler = Case::new(&server, Operation::Create, path, json!({}));
    let event = Case::new(&server, Operation::Create, "/api/v1/namespaces/default/events", json!({}));
    let of_autoscalers = rule("*", "autoscaling", "v2", "horizontalpodautoscalers", "*");
    let of_events = rule("*", "events.k8s.io", "*", "events", "*");
    for (case, rule, expected) in [
        (&autoscaler, of_autoscalers, "autoscaling/v2"),
        (&event, of_events, "events.k8s.io/v1"),
    ] {
        let mut criteria = criteria(json!([rule]));
        assert_eq!(case.matched(&criteria).await.unwrap(), None);
        criteria["matchPolicy"] = "Equivalent".into();
        assert_eq!(case.matched(&criteria).await.unwrap().as_deref(), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_look_at_the_namespace_and_at_the_object() {
    let server = server().await;
    let labels = json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}});
    let app = json!({"metadata": {"name": "a", "labels": {"app": "web"}}});
    let pod = Case::new(&server, Operation::Create, PODS, app.clone());
    let node = Case::new(&server, Operation::Create, "/api/v1/nodes", app);
    let absent = Case::new(&server, Operation::Create, "/api/v1/namespaces/absent/pods", json!({}));
    let new = json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "default"}}});
    let namespace = Case::new(&server, Operation::Create, "/api/v1/namespaces", new);
    let all = json!([rule("*", "*", "*", "*", "*")]);
    for (case, namespaces, objects, expected) in [
        (&pod, labels.clone(), json!({}), true),
        (&pod, json!({"matchLabels": {"team": "a"}}), json!({}), false),
        (&pod, json!({}), json!({"matchLabels": {"app": "web"}}), true),
        (&pod, json!({}), json!({"matchLabels": {"app": "db"}}), false),
        (&node, json!({"matchLabels": {"team": "a"}}), json!({}), true),
        (&namespace, labels.clone(), json!({}), true),
        (&namespace, json!({"matchLabels": {"team": "a"}}), json!({}), false),
    ] {
        let mut criteria = criteria(all.clone());
        criteria["namespaceSelector"] = namespaces.clone();
        criteria["objectSelector"] = objects.clone();
        let found = case.matched(&criteria).await.unwrap();
        assert_eq!(found.is_some(), expected, "{namespaces} {objects}");
    }
    let mut criteria = criteria(all);
    criteria["namespaceSelector"] = labels;
    let refusal = absent.matched(&criteria).await.unwrap_err();
    assert_eq!((refusal.code, &*refusal.message), (404, "namespaces \"absent\" not found"));
    criteria["rules"] = json!([]);
    assert_eq!(absent.matched(&criteria).await, Ok(None), "an error counts only if a rule matches");
}

#[tokio::test(start_paused = true)]
async fn other_versions_of_a_custom_resource_are_equivalent_if_they_have_the_subresource() {
    let server = server().await;
    let version = |name: &str, storage: bool, subresources: Value| {
        json!({"name": name, "served": true, "storage": storage, "subresources": subresources,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
            "versions": [version("v1", true, json!({"status": {}})), version("v2", false, json!({}))]}});
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json")
        .body(Full::from(definition.to_string()))
        .unwrap();
    let response = server.as_user(User::admin()).respond(request).await;
    assert_eq!(response.status(), 201, "{:?}", response.into_body().collect().await);
    let toys = "/apis/example.dev/v1/namespaces/default/toys/a";
    let whole = Case::new(&server, Operation::Update, toys, json!({}));
    let status = Case::new(&server, Operation::Update, &format!("{toys}/status"), json!({}));
    let mut criteria = criteria(json!([rule("*", "example.dev", "v2", "*/*", "*")]));
    criteria["matchPolicy"] = "Equivalent".into();

    assert_eq!(whole.matched(&criteria).await.unwrap().as_deref(), Some("example.dev/v2"));
    assert_eq!(status.matched(&criteria).await.unwrap(), None, "v2 has no status");
}
