//! Lists that are narrowed by namespace and labels, and objects that are created and deleted.

use crate::{
    reading::once,
    world::{World, config_map},
};
use flyball::{Context, Controller, Key, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
    core::Expression,
};
use serde_json::json;
use std::sync::Arc;

fn secret(name: &str, team: &str) -> Secret {
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": { "team": team } } })).unwrap()
}

async fn filled() -> World {
    let world = World::start().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let other = serde_json::from_value(json!({ "metadata": { "name": "other" } })).unwrap();
    namespaces.create(&PostParams::default(), &other).await.unwrap();
    for (namespace, name, team) in [
        ("default", "a", "blue"),
        ("default", "b", "red"),
        ("other", "c", "blue"),
        ("other", "d", "red"),
    ] {
        let api: Api<Secret> = Api::namespaced(world.client.clone(), namespace);
        api.create(&PostParams::default(), &secret(name, team)).await.unwrap();
    }
    world
}

fn blue() -> Expression {
    Expression::Equal("team".into(), "blue".into())
}

#[tokio::test(start_paused = true)]
async fn a_list_is_narrowed_by_namespace_and_by_labels_without_a_request() {
    let world = filled().await;
    let (listed, named) = once(&world, Controller::reads::<Secret>, async |ctx: Context| {
        let names = |secrets: Vec<Arc<Secret>>| secrets.iter().map(|it| it.name_any()).collect::<Vec<_>>().join(" ");
        let secrets = || ctx.objects::<Secret>();
        let listed = [
            names(secrets().list().await?),
            names(secrets().labels(blue()).list().await?),
            names(secrets().namespace("other").list().await?),
            names(secrets().namespace("other").labels(blue()).list().await?),
            names(secrets().all_namespaces().labels(blue()).list().await?),
            names(secrets().namespace("nowhere").list().await?),
        ];
        let named = [secrets().get("c").await?, secrets().namespace("other").get("c").await?];
        Ok((listed, named.map(|found| found.is_some())))
    })
    .await;
    assert_eq!(listed, ["a b", "a", "c d", "c", "a c", ""]);
    assert_eq!(named, [false, true]);
    let lists = world
        .requests()
        .iter()
        .filter(|it| it.contains("/secrets") && !it.contains("watch"))
        .count();
    assert_eq!(lists, 1, "{:?}", world.requests());
}

#[tokio::test(start_paused = true)]
async fn a_created_object_is_owned_if_its_kind_is_and_belongs_to_nobody_otherwise() {
    let world = World::start().await;
    let declare = |controller: Controller<ConfigMap>| {
        controller.owns::<Secret>().reads::<Secret>().needs::<ConfigMap>(["create"])
    };
    let (named, generated, again, read) = once(&world, declare, async |ctx| {
        let named = ctx.create(secret("mine", "blue")).await?;
        let generated: Secret = serde_json::from_value(json!({ "metadata": { "generateName": "job-" } }))?;
        let generated = ctx.create(generated).await?;
        ctx.create(config_map("free", "a", "1")).await?;
        let again = ctx.create(secret("mine", "blue")).await.unwrap_err();
        Ok((named, generated, again.to_string(), ctx.get::<Secret>("mine").await?.is_some()))
    })
    .await;
    assert_eq!(named.owner_references()[0].name, "ada");
    assert!(
        generated.name_any().starts_with("job-") && generated.name_any().len() > 4,
        "{generated:?}"
    );
    assert_eq!(generated.owner_references()[0].name, "ada");
    assert_eq!(again, "create Secret default/mine: secrets \"mine\" already exists");
    assert!(read, "it is read at once");
    let free = world.api::<ConfigMap>().get("free").await.unwrap();
    assert!(free.owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delete_may_be_repeated_and_keeps_to_its_preconditions() {
    let world = World::start().await;
    let bob = world.create(secret("bob", "blue")).await;
    let declare = |controller: Controller<ConfigMap>| controller.reads::<Secret>().needs::<Secret>(["delete"]);
    let (refused, deleted) = once(&world, declare, async move |ctx: Context| {
        ctx.list::<Secret>().await?;
        let other = DeleteParams {
            preconditions: Some(Preconditions { uid: Some("another".into()), resource_version: None }),
            ..DeleteParams::default()
        };
        let refused = ctx.delete::<Secret>("bob", &other).await.unwrap_err().to_string();
        let mut deleted = vec![ctx.get::<Secret>("bob").await?.is_some()];
        deleted.push(ctx.delete::<Secret>("bob", &DeleteParams::background()).await?);
        deleted.push(ctx.get::<Secret>("bob").await?.is_some());
        deleted.push(ctx.delete::<Secret>("bob", &DeleteParams::background()).await?);
        Ok((refused, deleted))
    })
    .await;
    assert!(
        refused.starts_with("delete Secret default/bob: ") && refused.contains(&bob.uid().unwrap()),
        "{refused}"
    );
    assert_eq!(deleted, [true, true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn creates_and_deletes_that_are_not_declared_are_refused_with_the_line_to_add() {
    let world = World::start().await;
    let refusals = once(&world, Controller::reads::<Secret>, async |ctx| {
        let create = ctx.create(secret("a", "blue")).await.unwrap_err();
        let delete = ctx.delete::<Secret>("a", &DeleteParams::default()).await.unwrap_err();
        Ok([create, delete].map(|refusal| refusal.to_string()))
    })
    .await;
    let line = |verb: &str| {
        format!("{verb} Secret: the controller does not own Secret: add `.needs::<Secret>([{verb:?}])` to it")
    };
    assert_eq!(refusals, [line("create"), line("delete")]);
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_for_a_cluster_scoped_kind_is_refused_at_the_call() {
    let world = World::start().await;
    let refusal = once(&world, Controller::reads::<Node>, async |ctx| -> Result<String> {
        Ok(ctx.get::<Node>(Key::namespaced("default", "n1")).await.unwrap_err().to_string())
    })
    .await;
    assert_eq!(
        refusal,
        "Node default/n1 has a namespace: Node is cluster-scoped, so name it with `Key::cluster`"
    );
    assert_eq!(Node::kind(&()), "Node");
}
