//! What `rbac` and `manifests` print: the least that is needed, and all of it accepted by an API server at once.

use crate::world::World;
use flyball::{Action, Context, Controller, Election, Manifests, Operator, Result};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node, Pod, Secret},
    rbac::v1::PolicyRule,
};
use kube::{
    Api, CustomResource, CustomResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "Lamp",
    namespaced,
    status = "LampStatus"
)]
struct LampSpec {
    colour: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct LampStatus {
    lit: bool,
}

async fn reconcile(_: Arc<Lamp>, _: Context) -> Result {
    Ok(Action::await_change())
}

async fn cleanup(_: Arc<Lamp>, _: Context) -> Result<()> {
    Ok(())
}

fn lamps() -> Operator {
    let controller = Controller::new(reconcile)
        .owns::<ConfigMap>()
        .reads::<ConfigMap>()
        .reads::<Deployment>()
        .watches(|_: Arc<Node>, _| [])
        .needs::<Pod>(["delete", "create"])
        .cleanup(cleanup);
    let rule = PolicyRule {
        api_groups: Some(vec!["apps".into()]),
        resources: Some(vec!["deployments/scale".into()]),
        verbs: vec!["patch".into()],
        ..Default::default()
    };
    Operator::new("lamps")
        .crd(Lamp::crd())
        .controller(controller)
        .permission(rule)
        .serves("http", 3000)
}

fn kind(object: &DynamicObject) -> &str {
    &object.types.as_ref().unwrap().kind
}

fn named<'a>(objects: &'a [DynamicObject], of: &str, name: &str) -> &'a DynamicObject {
    let found = objects
        .iter()
        .find(|object| kind(object) == of && object.metadata.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("no {of} {name}"))
}

fn kinds(objects: &[DynamicObject]) -> Vec<&str> {
    objects.iter().map(kind).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

fn installation() -> Value {
    json!({
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "resourceNames": ["lamps.example.dev"],
        "verbs": ["get", "create", "patch"],
    })
}

/// The rules about kinds that live in namespaces.
fn of_namespaces() -> Vec<Value> {
    vec![
        rule("", &["configmaps"], &["get", "list", "watch", "create", "patch", "delete"]),
        rule("", &["pods"], &["create", "delete"]),
        rule("apps", &["deployments"], &["get", "list", "watch"]),
        rule("events.k8s.io", &["events"], &["create", "patch"]),
        rule("example.dev", &["lamps"], &["get", "list", "watch", "patch"]),
        rule("example.dev", &["lamps/status"], &["update", "patch"]),
        rule("example.dev", &["lamps/finalizers"], &["update"]),
        rule("apps", &["deployments/scale"], &["patch"]),
    ]
}

fn of_the_cluster() -> Vec<Value> {
    vec![
        rule("", &["nodes"], &["get", "list", "watch"]),
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
        installation(),
    ]
}

fn assert_rules(role: &DynamicObject, mut expected: Vec<Value>) {
    let mut rules = role.data["rules"].as_array().unwrap().clone();
    rules.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(rules, expected);
}

#[test]
fn an_operator_may_do_what_it_declares_and_nothing_else() {
    let operator = lamps();
    let objects = Manifests::of(&operator).rbac();
    let expected = [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ClusterRole",
    ];
    assert_eq!(kinds(&objects), expected);
    assert_rules(named(&objects, "ClusterRole", "lamps"), [of_namespaces(), of_the_cluster()].concat());
    let election = named(&objects, "Role", "lamps-leader-election");
    assert_eq!(election.metadata.namespace.as_deref(), Some("lamps-system"));
    let leases = election.data["rules"].as_array().unwrap();
    assert_eq!(
        (&leases[0]["verbs"], &leases[1]["resourceNames"]),
        (&json!(["create"]), &json!(["lamps"]))
    );
    let binding = named(&objects, "ClusterRoleBinding", "lamps");
    let subject = json!({ "kind": "ServiceAccount", "name": "lamps", "namespace": "lamps-system" });
    assert_eq!(binding.data["subjects"], json!([subject]));
}

#[test]
fn who_watches_some_namespaces_has_rights_in_those_only() {
    let operator = lamps();
    let objects = Manifests::of(&operator).namespace("a").watching(["a", "b"]).rbac();
    assert_rules(named(&objects, "ClusterRole", "lamps"), of_the_cluster());
    let roles: Vec<_> = objects.iter().filter(|object| kind(object) == "Role").collect();
    let places: Vec<_> = roles.iter().map(|role| role.metadata.namespace.as_deref().unwrap()).collect();
    assert_eq!(places, ["a", "b", "a"]);
    assert_rules(roles[0], of_namespaces());
    assert_rules(roles[1], of_namespaces());
}

#[test]
fn namespaces_and_elections_that_the_operator_names_itself_are_heard() {
    async fn reconcile(_: Arc<Node>, _: Context) -> Result {
        Ok(Action::await_change())
    }
    let election = Election::new("nodes").namespace("locks");
    let controller = Controller::new(reconcile).election(election);
    let operator = Operator::new("nodes").controller(controller).namespaces(["b"]);
    let objects = Manifests::of(&operator).rbac();
    let mut roles: Vec<_> = objects.iter().filter(|object| kind(object) == "Role").map(place).collect();
    roles.sort();
    let expected = [
        "b/nodes",
        "default/nodes-events",
        "locks/nodes-leader-election",
        "nodes-system/nodes-leader-election",
    ];
    assert_eq!(roles, expected);
}

fn place(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    format!("{}/{}", metadata.namespace.as_deref().unwrap(), metadata.name.as_deref().unwrap())
}

#[test]
fn the_status_of_a_kind_that_has_none_is_left_alone() {
    async fn reconcile(_: Arc<Secret>, _: Context) -> Result {
        Ok(Action::await_change())
    }
    let operator = Operator::new("secrets").controller(Controller::new(reconcile));
    let objects = Manifests::of(&operator).rbac();
    let rules = named(&objects, "ClusterRole", "secrets").data["rules"].as_array().unwrap();
    assert!(rules.contains(&rule("", &["secrets"], &["get", "list", "watch"])), "{rules:?}");
    assert!(!rules.iter().any(|rule| rule.to_string().contains("secrets/")), "{rules:?}");
}

#[test]
fn the_deployment_is_as_restricted_as_pods_can_be() {
    let operator = lamps();
    let objects = Manifests::of(&operator).replicas(3).all("example.dev/lamps:1").unwrap();
    let spec = &named(&objects, "Deployment", "lamps").data["spec"];
    assert_eq!(spec["replicas"], 3);
    let pod = &spec["template"]["spec"];
    assert_eq!(
        pod["securityContext"],
        json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } })
    );
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "example.dev/lamps:1");
    assert_eq!(container["resources"]["requests"], json!({ "cpu": "100m", "memory": "128Mi" }));
    assert_eq!(container["resources"]["limits"], json!({ "cpu": "500m", "memory": "512Mi" }));
    let restricted = json!({
        "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
    });
    assert_eq!(container["securityContext"], restricted);
    assert_eq!(container["livenessProbe"]["httpGet"], json!({ "path": "/healthz", "port": "health" }));
    assert_eq!(container["readinessProbe"]["httpGet"], json!({ "path": "/readyz", "port": "health" }));
    assert_eq!(container["ports"][2], json!({ "name": "http", "containerPort": 3000, "protocol": "TCP" }));
    let namespace = named(&objects, "Namespace", "lamps-system");
    assert_eq!(
        namespace.metadata.labels.as_ref().unwrap()["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
    let policy = named(&objects, "NetworkPolicy", "lamps").data["spec"]["ingress"][0]["ports"]
        .as_array()
        .unwrap();
    assert_eq!(
        policy.iter().map(|port| port["port"].as_u64().unwrap()).collect::<Vec<_>>(),
        [8080, 8081, 3000]
    );
    assert!(!kinds(&objects).contains(&"ServiceMonitor"), "its kind is not in every cluster");
    let monitored = Manifests::of(&operator).without_namespace().service_monitor().all("a").unwrap();
    assert!(kinds(&monitored).contains(&"ServiceMonitor") && !kinds(&monitored).contains(&"Namespace"));
    let monitor = monitored
        .iter()
        .find(|object| object.types.as_ref().unwrap().kind == "ServiceMonitor")
        .unwrap();
    let endpoint = &monitor.data["spec"]["endpoints"][0];
    assert_eq!(
        (&endpoint["scheme"], &endpoint["tlsConfig"]["insecureSkipVerify"]),
        (&"https".into(), &true.into())
    );
}

async fn apply(world: &World, object: &DynamicObject) {
    let types = object.types.as_ref().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(world.client.clone(), namespace, &resource),
        None => Api::all_with(world.client.clone(), &resource),
    };
    let params = PatchParams::apply("test").validation_strict();
    let name = object.metadata.name.as_deref().unwrap();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("apply {} {name}: {error}", types.kind));
}

#[tokio::test(start_paused = true)]
async fn everything_is_accepted_in_the_order_in_which_it_is_printed() {
    let world = World::start().await;
    let operator = lamps();
    let manifests = Manifests::of(&operator).watching(["default", "lamps-system"]);
    let objects = manifests.all("example.dev/lamps:1").unwrap();
    for object in &objects {
        apply(&world, object).await;
    }
    assert_eq!(
        objects,
        manifests.all("example.dev/lamps:1").unwrap(),
        "the same operator, the same manifests"
    );
}
