//! What others do between a read and a write, while the watch has not told of it yet.

use crate::world::{World, config_map, pass};
use flyball::{Action, Applied, Context, Controller, Operator, Result, Selection};
use flyball_test::Answer;
use http::Request;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{Api, Patch, PatchParams, PostParams},
    client::Body,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "Tower",
    namespaced,
    status = "TowerStatus"
)]
struct TowerSpec {
    floors: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct TowerStatus {
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    conditions: Vec<Condition>,
}

/// Watches of a resource that tell of nothing.
fn silent(resource: &'static str) -> impl FnMut(&Request<Body>) -> Option<Answer> + Send {
    move |request| {
        let uri = request.uri();
        let watched = uri.path().ends_with(resource) && uri.query().is_some_and(|query| query.contains("watch=true"));
        watched.then(Answer::silence)
    }
}

async fn change<K>(client: &Client, subresource: Option<&str>, patch: Value)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api = Api::<K>::namespaced(client.clone(), "default");
    let params = PatchParams {
        field_manager: Some("somebody".into()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(patch);
    match subresource {
        Some(subresource) => api.patch_subresource(subresource, "ada", &params, &patch).await.map(|_| ()).unwrap(),
        None => api.patch("ada", &params, &patch).await.map(|_| ()).unwrap(),
    }
}

fn deployment() -> Deployment {
    let labels = json!({ "app": "ada" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "b" }] } });
    let spec = json!({ "replicas": 3, "selector": { "matchLabels": labels }, "template": template });
    serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_status_that_moves_on_meanwhile_is_no_drift() {
    let world = World::start().await;
    world.break_with(silent("/deployments"));
    let (sender, mut answers) = mpsc::unbounded_channel();
    let client = world.client.clone();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let (sender, client) = (sender.clone(), client.clone());
        async move {
            if map.labels().contains_key("again") {
                let note = json!({ "metadata": { "annotations": { "of": "others" } } });
                ctx.patch::<Deployment>("ada", &Patch::Merge(note)).await?;
                change::<Deployment>(&client, Some("status"), json!({ "status": { "replicas": 3 } })).await;
            }
            sender.send(ctx.apply(deployment()).await?)?;
            Ok(Action::await_change())
        }
    };
    let controller = Controller::new(reconcile).owns::<Deployment>();
    let _running = world.run(&Operator::new("keeper").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |_: &Deployment| true).await;
    pass(Duration::from_secs(1)).await;
    while answers.try_recv().is_ok() {}
    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "again": "yes" } } }))
        .await;
    assert_eq!(answers.recv().await.unwrap(), Applied::Unchanged);
}

/// Towers whose conditions are known by their type, as Kubernetes has it.
fn towers() -> CustomResourceDefinition {
    let mut crd = serde_json::to_value(Tower::crd()).unwrap();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let text = json!({ "type": "string" });
    let fields = json!({
        "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text,
        "observedGeneration": { "type": "integer" },
    });
    schema["properties"]["status"]["properties"]["conditions"] = json!({
        "type": "array",
        "items": { "type": "object", "required": ["type"], "properties": fields },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    });
    serde_json::from_value(crd).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_somebody_adds_meanwhile_stays() {
    let world = World::start().await;
    world.break_with(silent("/towers"));
    let client = world.client.clone();
    let reconcile = move |tower: Arc<Tower>, ctx: Context| {
        let client = client.clone();
        async move {
            let mut theirs = ctx.condition("Painted", true, "Somebody", "");
            theirs.observed_generation = None;
            if tower.status.is_none() {
                change::<Tower>(&client, Some("status"), json!({ "status": { "conditions": [theirs] } })).await;
            }
            let conditions = vec![ctx.condition("Ready", true, "Built", "")];
            ctx.set_status(TowerStatus { conditions }).await?;
            Ok(Action::await_change())
        }
    };
    Api::all(world.client.clone()).create(&PostParams::default(), &towers()).await.unwrap();
    world.create(Tower::new("ada", TowerSpec { floors: 3 })).await;
    let _running = world.run(&Operator::new("builder").controller(Controller::new(reconcile))).await;
    let built = |tower: &Tower| tower.status.iter().flat_map(|status| &status.conditions).any(|it| it.type_ == "Ready");
    let tower = world.until("ada", built).await;
    let mut types: Vec<_> = tower.status.unwrap().conditions.into_iter().map(|condition| condition.type_).collect();
    types.sort();
    assert_eq!(types, ["Painted", "Ready"]);
}

#[tokio::test(start_paused = true)]
async fn a_condition_keeps_its_time_also_where_no_status_is_cached() {
    async fn build(_: Arc<Tower>, ctx: Context) -> Result {
        let conditions = vec![ctx.condition("Ready", true, "Built", "")];
        ctx.set_status(TowerStatus { conditions }).await?;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let bare = Selection::default().transform(|tower| drop(tower.as_object_mut().unwrap().remove("status")));
    let controller = Controller::new(build).select::<Tower>(bare);
    let _running = world.run(&Operator::new("builder").crd(towers()).controller(controller)).await;
    world.create(Tower::new("ada", TowerSpec { floors: 3 })).await;
    pass(Duration::from_secs(5)).await;
    assert_eq!(world.writes().iter().filter(|write| write.contains("/status")).count(), 1);
    world
        .merge::<Tower>("ada", json!({ "metadata": { "labels": { "seen": "again" } } }))
        .await;
    pass(Duration::from_secs(5)).await;
    assert_eq!(world.writes(), [""; 0]);
}

/// Deletes a ConfigMap while somebody does something at each cleanup; says how often it is cleaned up until it is gone.
async fn cleanups<Fut>(meanwhile: impl Fn(World) -> Fut + Send + Sync + 'static) -> usize
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let world = World::start().await;
    let cleanups = Arc::new(AtomicUsize::new(0));
    let (made, other) = (cleanups.clone(), world.clone());
    let cleanup = move |_: Arc<ConfigMap>, _: Context| {
        made.fetch_add(1, Ordering::SeqCst);
        let done = meanwhile(other.clone());
        async move {
            done.await;
            Ok(())
        }
    };
    let idle = async |_: Arc<ConfigMap>, _: Context| Ok(Action::await_change());
    let _running = world
        .run(&Operator::new("cleaner").controller(Controller::new(idle).cleanup(cleanup)))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    world.delete::<ConfigMap>("ada").await;
    world.until_gone::<ConfigMap>("ada").await;
    cleanups.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_while_it_is_cleaned_up_is_cleaned_up_once() {
    let label = async |world: World| {
        change::<ConfigMap>(&world.client, None, json!({ "metadata": { "labels": { "seen": "yes" } } })).await;
    };
    assert_eq!(cleanups(label).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_removed_also_where_somebody_came_in_between() {
    let overtake = async |world: World| {
        let mut conflicts = 2;
        world.break_with(move |request| {
            conflicts -= i32::from(request.method() == "PATCH");
            (request.method() == "PATCH" && conflicts >= 0).then(|| Answer::refusal(409, "changed"))
        });
    };
    assert_eq!(cleanups(overtake).await, 1);
}
