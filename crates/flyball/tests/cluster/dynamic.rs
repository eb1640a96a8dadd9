//! Kinds that are known at run time only: declared, read and written like any other.

use crate::{
    reading::once,
    world::{World, config_map, pass, widgets},
};
use flyball::{Action, Applied, Cache, Context, Controller, Key, Manifests, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::timeout};

fn widget(name: &str, colour: &str) -> DynamicObject {
    DynamicObject::new(name, &widgets()).data(json!({ "spec": { "colour": colour } }))
}

fn api(world: &World) -> Api<DynamicObject> {
    Api::namespaced_with(world.client.clone(), "default", &widgets())
}

async fn names(world: &World) -> Vec<String> {
    let widgets = api(world).list(&ListParams::default()).await.unwrap();
    widgets.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_type_is_applied_read_patched_deleted_and_pruned() {
    let world = World::start().await;
    let resource = world.install_widgets().await;
    let declare = move |controller: Controller<ConfigMap>| {
        let by_colour = |widget: &DynamicObject| vec![widget.data["spec"]["colour"].as_str().unwrap().to_owned()];
        controller.dynamic(&resource, |kind| kind.owns().reads().index("colour", by_colour))
    };
    let (seen, count) = once(&world, declare, async |ctx| {
        let kinds = widgets();
        let widgets = ctx.dynamic(&kinds);
        let mut seen = Vec::new();
        seen.push(widgets.apply(widget("one", "red")).await?);
        seen.push(widgets.apply(widget("one", "red")).await?);
        widgets.apply(widget("two", "blue")).await?;
        let patch = json!({ "spec": { "colour": "green" } });
        let patched = widgets.patch("two", &Patch::Merge(patch)).await?;
        assert_eq!(patched.data["spec"]["colour"], "green");
        let read = widgets.get("two").await?.unwrap();
        assert_eq!(read.data, patched.data);
        assert_eq!(widgets.by_index("colour", "green").await?.len(), 1);
        widgets.create(widget("three", "grey")).await?;
        assert_eq!(widgets.owned().await?.len(), 3);
        assert!(widgets.delete("three", &DeleteParams::default()).await?);
        assert!(!widgets.delete("three", &DeleteParams::default()).await?);
        Ok((seen, widgets.list().await?.len()))
    })
    .await;
    assert_eq!((seen.as_slice(), count), ([Applied::Created, Applied::Unchanged].as_slice(), 2));
    let one = api(&world).get("one").await.unwrap();
    let owner = &one.owner_references()[0];
    assert_eq!((owner.name.as_str(), owner.controller), ("ada", Some(true)));
}

/// Keeps one Widget beside every ConfigMap, of the colour that it says; none without one.
fn painter(resource: ApiResource) -> Controller<ConfigMap> {
    let owned = resource.clone();
    let paint = move |map: Arc<ConfigMap>, ctx: Context| {
        let resource = resource.clone();
        async move {
            let widgets = ctx.dynamic(&resource);
            if let Some(colour) = map.data.iter().flatten().find_map(|(key, value)| (key == "colour").then_some(value))
            {
                widgets.apply(widget("", colour)).await?;
            }
            widgets.prune().await?;
            Ok(Action::await_change())
        }
    };
    Controller::new(paint).dynamic(&owned, |kind| kind.owns())
}

#[tokio::test(start_paused = true)]
async fn children_without_a_type_trigger_their_owner_and_are_pruned() {
    let world = World::start().await;
    let resource = world.install_widgets().await;
    let _running = world.run(&Operator::new("painter").controller(painter(resource))).await;
    world.create(config_map("ada", "colour", "red")).await;
    let painted = |colour: &'static str| {
        let api = api(&world);
        async move {
            let has = |widget: Option<&DynamicObject>| widget.is_some_and(|it| it.data["spec"]["colour"] == colour);
            let painted = timeout(Duration::from_secs(3_600), await_condition(api, "ada", has)).await;
            painted.unwrap().unwrap().unwrap()
        }
    };
    let first = painted("red").await;
    let drift = Patch::Merge(json!({ "spec": { "colour": "black" } }));
    api(&world).patch("ada", &PatchParams::default(), &drift).await.unwrap();
    painted("red").await;
    api(&world).delete("ada", &DeleteParams::default()).await.unwrap();
    assert_ne!(painted("red").await.uid(), first.uid());
    world.merge::<ConfigMap>("ada", json!({ "data": { "colour": null } })).await;
    pass(Duration::from_secs(10)).await;
    assert_eq!(names(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_type_that_is_watched_triggers_what_it_names() {
    let world = World::start().await;
    let resource = world.install_widgets().await;
    let (sender, mut names) = mpsc::unbounded_channel();
    let tell = move |map: Arc<ConfigMap>, _: Context| {
        let sender = sender.clone();
        async move {
            sender.send(map.name_any())?;
            Ok(Action::await_change())
        }
    };
    let target = |widget: Arc<DynamicObject>, _: Cache| {
        widget.data["spec"]["colour"].as_str().map(|name| Key::namespaced("default", name))
    };
    let touched = |widget: Arc<PartialObjectMeta<DynamicObject>>, _: Cache| {
        widget.annotations().get("touch").map(|name| Key::namespaced("default", name))
    };
    let watching = Controller::new(tell).dynamic(&resource, |kind| kind.watches(target).watches(touched));
    let _running = world.run(&Operator::new("watcher").controller(watching)).await;
    for name in ["ada", "bob"] {
        world.create(config_map(name, "a", "1")).await;
        while names.recv().await.unwrap() != name {}
    }
    let mut object = widget("w", "bob");
    object.annotations_mut().insert("touch".into(), "ada".into());
    api(&world).create(&PostParams::default(), &object).await.unwrap();
    let mut told = [names.recv().await.unwrap(), names.recv().await.unwrap()];
    told.sort();
    assert_eq!(told, ["ada", "bob"]);
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_kind_without_a_type_is_refused_with_the_line_to_add() {
    let world = World::start().await;
    let refusals = once(
        &world,
        |controller| controller,
        async |ctx| {
            let kinds = widgets();
            let widgets = ctx.dynamic(&kinds);
            let refusals = [
                widgets.get("a").await.unwrap_err(),
                widgets.apply(widget("a", "red")).await.unwrap_err(),
                widgets.create(widget("a", "red")).await.unwrap_err(),
                widgets.delete("a", &DeleteParams::default()).await.unwrap_err(),
                widgets.prune().await.unwrap_err(),
            ];
            Ok(refusals.map(|refusal| refusal.to_string()))
        },
    )
    .await;
    let owns = "the controller does not own Widget: add `.dynamic(&resource, |kind| kind.owns())` to it";
    let needs = |verb: &str| {
        format!(
            "{verb} Widget: the controller does not own Widget: add `.dynamic(&resource, |kind| kind.needs([{verb:?}]))` to it"
        )
    };
    let expected = [
        "Widget is not cached: declare it with `.dynamic(&resource, |kind| kind.reads())`, or read it with `ctx.client()`".into(),
        format!("apply Widget: {owns}"),
        needs("create"),
        needs("delete"),
        format!("prune Widget: {owns}"),
    ];
    assert_eq!(refusals, expected);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_kind_without_a_type_is_read_by_its_name() {
    let world = World::start().await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": "n1" } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let resource = ApiResource::erase::<Node>(&());
    let declared = resource.clone();
    let declare = move |controller: Controller<ConfigMap>| controller.dynamic(&declared, |kind| kind.reads());
    let found = once(&world, declare, move |ctx| {
        let resource = resource.clone();
        async move {
            let nodes = ctx.dynamic(&resource);
            Ok((
                nodes.get("n1").await?.is_some(),
                nodes.list().await?.len(),
                nodes.get("n2").await?.is_some(),
            ))
        }
    })
    .await;
    assert_eq!(found, (true, 1, false));
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_type_has_its_rights_and_needs_a_scope_in_a_confined_operator() {
    let operator = Operator::new("painter").controller(painter(widgets()));
    let printed = Manifests::of(&operator)
        .rbac()
        .into_iter()
        .map(|object| object.data)
        .collect::<Vec<Value>>();
    let rules: Vec<_> = printed
        .iter()
        .flat_map(|object| object["rules"].as_array().cloned().unwrap_or_default())
        .collect();
    let of_widgets = rules.iter().find(|rule| rule["resources"] == json!(["widgets"])).unwrap();
    assert_eq!(of_widgets["verbs"], json!(["get", "list", "watch", "create", "patch", "delete"]));

    let world = World::start().await;
    let confined = async |operator: Operator| operator.namespaces(["default"]).start(world.client.clone()).await;
    let refusal = confined(operator).await.unwrap_err().to_string();
    assert!(
        refusal.contains("the scope of Widget is not known: say `.namespaced()` or `.cluster_wide()` in `.dynamic(…)`"),
        "{refusal}"
    );
    let scoped = painter(widgets()).dynamic(&widgets(), |kind| kind.namespaced());
    drop(confined(Operator::new("painter").controller(scoped)).await.unwrap());
}

async fn reconcile_dynamic(object: Arc<DynamicObject>, ctx: Context) -> Result {
    ctx.set_status(json!({ "seen": object.data["spec"]["colour"] })).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_a_kind_without_a_type_sets_its_status() {
    let world = World::start().await;
    let resource = world.install_widgets().await;
    let _running = world
        .run(&Operator::new("seer").controller(Controller::of(resource, reconcile_dynamic)))
        .await;
    api(&world).create(&PostParams::default(), &widget("w", "red")).await.unwrap();
    let seen = |widget: Option<&DynamicObject>| widget.is_some_and(|it| it.data["status"]["seen"] == "red");
    let seen = timeout(Duration::from_secs(3_600), await_condition(api(&world), "w", seen)).await;
    seen.unwrap().unwrap();
}
