//! The kinds that an operator brings along: who installs them, and what is not overwritten.

use crate::world::{World, pass};
use flyball::{Action, Config, Context, Controller, Election, Operator, Result, Running};
use flyball_test::Answer;
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt, api::PostParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Lamp", namespaced)]
struct LampSpec {
    #[serde(default)]
    on: bool,
}

async fn reconcile(_: Arc<Lamp>, ctx: Context) -> Result {
    ctx.event(flyball::Event::normal("Seen", "seen"));
    Ok(Action::await_change())
}

/// The kind with one field more.
fn dimmable() -> CustomResourceDefinition {
    let mut crd = serde_json::to_value(Lamp::crd()).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    crd.pointer_mut(spec).unwrap()["dim"] = serde_json::json!({ "type": "boolean" });
    serde_json::from_value(crd).unwrap()
}

/// The kind with versions in place of `v1`, of which the first is stored.
fn versioned(names: &[&str]) -> CustomResourceDefinition {
    let mut crd = Lamp::crd();
    let version = crd.spec.versions[0].clone();
    let named = names.iter().enumerate().map(|(count, name)| {
        let mut version = version.clone();
        (version.name, version.storage) = (name.to_string(), count == 0);
        version
    });
    crd.spec.versions = named.collect();
    crd
}

fn operator(crd: CustomResourceDefinition, version: Option<&str>) -> Operator {
    let operator = Operator::new("lamps").crd(crd).controller(Controller::new(reconcile));
    match version {
        Some(version) => operator.version(version),
        None => operator,
    }
}

fn has_dim(crd: &CustomResourceDefinition) -> bool {
    serde_json::to_string(crd).unwrap().contains("\"dim\"")
}

async fn installed(world: &World) -> Option<CustomResourceDefinition> {
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    api.get_opt(&Lamp::crd().name_any()).await.unwrap()
}

fn definition_writes(world: &World) -> usize {
    world
        .writes()
        .iter()
        .filter(|request| request.contains("/customresourcedefinitions/"))
        .count()
}

/// No ports, and kinds that are installed as `install` says.
fn config(install: &str) -> Config {
    let text = format!("metrics: {{ enabled: false }}\nhealth: {{ enabled: false }}\ncrds: {{ install: {install} }}");
    Config::from_yaml(&text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_leader_installs_the_kinds_and_a_new_one_writes_nothing_that_is_there() {
    let world = World::start().await;
    let replica = |name: &str| operator(Lamp::crd(), Some("1.0.0")).election(Election::new("lamps").identity(name));
    let mut replicas: Vec<Running> = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(world.run(&replica(name)).await);
        pass(10 * SECOND).await;
    }
    assert!(installed(&world).await.is_some());
    assert_eq!(definition_writes(&world), 1);
    replicas.remove(0).stop().await;
    pass(30 * SECOND).await;
    assert!(replicas.iter().any(|replica| replica.leadership().is_leading()));
    assert_eq!(definition_writes(&world), 0);
    let api: Api<Lamp> = Api::namespaced(world.client.clone(), "default");
    api.create(&PostParams::default(), &Lamp::new("ada", LampSpec::default())).await.unwrap();
    pass(60 * SECOND).await;
    let seen = replicas.iter().map(|replica| replica.events().query(&Default::default()).len());
    assert_eq!(
        seen.sum::<usize>(),
        1,
        "the kind is watched once it is there, and reconciled by the leader"
    );
}

#[tokio::test(start_paused = true)]
async fn an_older_operator_does_not_put_an_older_kind_back() {
    let world = World::start().await;
    let start = async |crd, version| world.run(&operator(crd, version)).await.stop().await;
    start(Lamp::crd(), Some("1.9.0")).await;
    assert!(!has_dim(&installed(&world).await.unwrap()));
    start(dimmable(), Some("1.10.0")).await;
    assert!(has_dim(&installed(&world).await.unwrap()), "a newer one replaces it");
    start(Lamp::crd(), Some("1.9.0")).await;
    assert!(has_dim(&installed(&world).await.unwrap()), "an older one does not");
    start(Lamp::crd(), Some("1.10.0")).await;
    assert!(!has_dim(&installed(&world).await.unwrap()), "the same version decides what it is");
}

#[tokio::test(start_paused = true)]
async fn versions_that_the_operator_does_not_know_are_not_overwritten() {
    let world = World::start().await;
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    api.create(&PostParams::default(), &versioned(&["v1", "v2"])).await.unwrap();
    let running = world.run(&operator(dimmable(), Some("9.0.0"))).await;
    assert!(!has_dim(&installed(&world).await.unwrap()));
    assert_eq!(definition_writes(&world), 0, "and the operator works with the version that it knows");
    running.stop().await;

    let refused = operator(versioned(&["v1alpha1"]), None)
        .start(world.client.clone())
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "lamps.example.dev in the cluster does not serve v1alpha1",
        "serving or storing v1, v2, which this operator does not know",
        "run the release of the operator that brings it",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_says_who_installs_the_kinds() {
    let world = World::start().await;
    let never = world.run_with(&operator(Lamp::crd(), None), &config("never")).await;
    pass(60 * SECOND).await;
    assert!(installed(&world).await.is_none() && never.leadership().is_leading());
    never.stop().await;

    let holder = world.run_with(&operator(Lamp::crd(), None), &config("never")).await;
    pass(10 * SECOND).await;
    let always = world.run_with(&operator(Lamp::crd(), None), &config("always")).await;
    assert!(installed(&world).await.is_some() && !always.leadership().is_leading(), "before it leads");
    holder.stop().await;
    let mistake = Config::from_yaml("crds: { install: sometimes }").unwrap_err().to_string();
    assert_eq!(mistake, "crds.install: invalid value `sometimes`: expected leader, always or never");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_may_not_install_its_kinds_is_not_ready_and_says_what_to_do() {
    let world = World::start().await;
    world.break_with(|request| {
        let refused = *request.method() == Method::PATCH && request.uri().path().contains("customresourcedefinitions");
        refused.then(|| Answer::refusal(403, "definitions are forbidden"))
    });
    let operator = operator(Lamp::crd(), None).election(Election::new("lamps"));
    let running = world.run(&operator).await;
    pass(60 * SECOND).await;
    let ready = async || {
        let mut config = Config::default();
        config.metrics.address = "127.0.0.1".parse().unwrap();
        let request = http::Request::get("/readyz?verbose").body(axum::body::Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(running.admin(&config), request).await.unwrap();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.into()).unwrap()
    };
    let text = ready().await;
    assert!(text.contains("[-]crds failed: ") && text.contains("definitions are forbidden"), "{text}");
    assert!(text.contains("set `crds.install: never`"), "{text}");
    world.mend();
    pass(120 * SECOND).await;
    let text = ready().await;
    assert!(text.ends_with("readyz check passed\n") && installed(&world).await.is_some(), "{text}");
}
