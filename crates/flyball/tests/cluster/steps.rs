//! Children that are applied as one set: in steps, each after the one before is ready, and pruned in reverse.

use crate::world::{World, config_map, pass, widgets};
use flyball::{Action, Applied, Children, Context, Controller, Operator, Result};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

fn secret(name: &str) -> Secret {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

fn deployment(name: &str) -> Deployment {
    let labels = json!({ "app": name });
    let container = json!({ "name": "main", "image": "registry.example/main" });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let spec = json!({ "replicas": 1, "selector": { "matchLabels": labels }, "template": template });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

/// What a ConfigMap's entries ask for: `secrets`, then the Deployments of `database`, then the Secrets that `web` names.
fn children(map: &ConfigMap) -> Children {
    let entry = |name: &str| map.data.as_ref().and_then(|data| data.get(name));
    let names =
        |entry: Option<&String>| entry.map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default();
    let before: Vec<String> = names(entry("secrets"));
    let after: Vec<String> = names(entry("web"));
    let mut children = before.iter().fold(Children::new(), |children, name| children.apply(secret(name))).then();
    let databases: Vec<String> = names(entry("database"));
    if !databases.is_empty() {
        children = databases.iter().fold(children, |children, name| children.apply(deployment(name))).then();
    }
    after.iter().fold(children, |children, name| children.apply(secret(name)))
}

async fn build(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply_all(children(&map)).await?;
    Ok(Action::await_change())
}

fn operator() -> Operator {
    let controller = Controller::new(build).owns::<Deployment>().reads::<Deployment>().owns::<Secret>();
    Operator::new("builder").controller(controller)
}

fn owner(entries: Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": "ada" }, "data": entries })).unwrap()
}

async fn secrets(world: &World) -> Vec<String> {
    let secrets = world.api::<Secret>().list(&ListParams::default()).await.unwrap();
    secrets.items.into_iter().filter_map(|secret| secret.metadata.name).collect()
}

async fn make_ready(world: &World, name: &str) {
    let progressing = json!({ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" });
    let conditions = json!([{ "type": "Available", "status": "True" }, progressing]);
    let counts = json!({
        "observedGeneration": 1,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "conditions": conditions,
    });
    let patch = Patch::Merge(json!({ "status": counts }));
    world
        .api::<Deployment>()
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_step_is_applied_once_the_step_before_is_ready() {
    let world = World::start().await;
    let running = world.run(&operator()).await;
    world
        .create(owner(json!({ "secrets": "password", "database": "database", "web": "web" })))
        .await;
    world.until("database", |_: &Deployment| true).await;
    pass(300 * SECOND).await;
    assert_eq!(secrets(&world).await, ["password"], "the last step waits");
    assert!(running.queues(10)[0].failing.is_empty(), "waiting is no failure");
    world.writes();
    pass(300 * SECOND).await;
    assert_eq!(world.writes(), Vec::<String>::new(), "what is as it should be is not written again");
    make_ready(&world, "database").await;
    world.until("web", |_: &Secret| true).await;
    assert_eq!(secrets(&world).await, ["password", "web"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_set_no_longer_contains_is_deleted_in_reverse_order() {
    let world = World::start().await;
    let _running = world.run(&operator()).await;
    world
        .create(owner(json!({ "secrets": "password", "database": "database", "web": "web,old" })))
        .await;
    world.until("database", |_: &Deployment| true).await;
    make_ready(&world, "database").await;
    world.until("old", |_: &Secret| true).await;
    let deleted = |writes: Vec<String>| -> Vec<String> {
        let paths = writes.iter().filter_map(|write| write.strip_prefix("DELETE "));
        paths
            .map(|path| path.rsplit('/').next().unwrap().trim_end_matches(['?', '&']).to_owned())
            .collect()
    };
    world.writes();
    world.merge::<ConfigMap>("ada", json!({ "data": { "web": "web" } })).await;
    world.until_gone::<Secret>("old").await;
    pass(SECOND).await;
    assert_eq!(deleted(world.writes()), ["old"], "the rest stays");
    world
        .merge::<ConfigMap>("ada", json!({ "data": { "database": null, "web": null } }))
        .await;
    world.until_gone::<Secret>("web").await;
    pass(SECOND).await;
    assert_eq!(deleted(world.writes()), ["database", "web"], "a kind that is not in the set goes first");
    world
        .merge::<ConfigMap>("ada", json!({ "data": { "secrets": "password,extra", "database": "one,two" } }))
        .await;
    for name in ["one", "two"] {
        world.until(name, |_: &Deployment| true).await;
        make_ready(&world, name).await;
    }
    pass(60 * SECOND).await;
    world.writes();
    world
        .merge::<ConfigMap>("ada", json!({ "data": { "secrets": "password", "database": "one" } }))
        .await;
    world.until_gone::<Secret>("extra").await;
    pass(SECOND).await;
    assert_eq!(deleted(world.writes()), ["two", "extra"], "a later step goes before an earlier one");
    world.merge::<ConfigMap>("ada", json!({ "data": null })).await;
    world.until_gone::<Secret>("password").await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_a_step_waits_or_after_an_apply_that_failed() {
    let world = World::start().await;
    let _running = world.run(&operator()).await;
    world.create(owner(json!({ "secrets": "a,b" }))).await;
    world.until("b", |_: &Secret| true).await;
    for set in [
        json!({ "secrets": "a,not a name" }),
        json!({ "secrets": "a", "database": "database", "web": "web" }),
    ] {
        world.merge::<ConfigMap>("ada", json!({ "data": set })).await;
        pass(60 * SECOND).await;
        assert_eq!(secrets(&world).await, ["a", "b"]);
    }
    assert!(
        world.api::<Deployment>().get_opt("database").await.unwrap().is_some(),
        "the second step waits"
    );
    make_ready(&world, "database").await;
    world.until("web", |_: &Secret| true).await;
    world.until_gone::<Secret>("b").await;
    assert_eq!(secrets(&world).await, ["a", "web"]);
}

#[tokio::test(start_paused = true)]
async fn dynamic_children_take_part_and_a_kind_whose_status_is_not_cached_is_refused() {
    async fn decorate(_: Arc<ConfigMap>, ctx: Context) -> Result {
        let widget = DynamicObject::new("ada", &widgets()).data(json!({ "spec": { "size": 1 } }));
        let applied = ctx
            .apply_all(Children::new().apply_dynamic(&widgets(), widget).then().apply(secret("after")))
            .await?;
        assert_eq!(applied.len(), 2);
        assert_ne!(applied[0], Applied::NotInstalled);
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let resource = world.install_widgets().await;
    world.create(config_map("ada", "a", "1")).await;
    let controller = || Controller::new(decorate).owns::<Secret>();
    let running = world
        .run(&Operator::new("one").controller(controller().dynamic(&resource, |kind| kind.owns())))
        .await;
    pass(SECOND).await;
    let error = running.queues(10)[0].failing[0].error.clone().unwrap();
    assert!(
        error.contains("only the metadata of Widget is cached: declare `.dynamic(") && error.contains(".reads()"),
        "{error}"
    );
    running.stop().await;

    let reading = controller().dynamic(&resource, |kind| kind.owns().reads());
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &resource);
    let status =
        |ready: &str| Patch::Merge(json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }] } }));
    api.patch_status("ada", &PatchParams::default(), &status("False")).await.unwrap();
    let _running = world.run(&Operator::new("one").controller(reading)).await;
    pass(60 * SECOND).await;
    let there = world.api::<Secret>().get_opt("after").await.unwrap();
    assert!(there.is_none(), "the Widget is not ready: {there:?}");
    api.patch_status("ada", &PatchParams::default(), &status("True")).await.unwrap();
    world.until("after", |_: &Secret| true).await;
}
