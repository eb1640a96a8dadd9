//! Cached reads: what may be read, and that no read is older than this process's own writes.

use crate::world::{World, config_map};
use flyball::{Action, Context, Controller, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;

fn secret(name: &str) -> Secret {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

/// Runs `reconcile` once on a ConfigMap called `ada`, and gives back what it answers.
pub async fn once<Fut, T>(
    world: &World,
    declare: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>,
    reconcile: impl Fn(Context) -> Fut + Send + Sync + 'static,
) -> T
where
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Send + Sync + 'static,
{
    let (sender, mut answers) = mpsc::unbounded_channel();
    let reconcile = Arc::new(reconcile);
    let work = move |map: Arc<ConfigMap>, ctx: Context| {
        let (sender, reconcile) = (sender.clone(), reconcile.clone());
        async move {
            if map.name_any() == "ada" {
                let answer = reconcile(ctx).await;
                sender.send(answer).map_err(|_| "nobody waits any more")?;
            }
            Ok(Action::await_change())
        }
    };
    let _running = world.run(&Operator::new("reader").controller(declare(Controller::new(work)))).await;
    world.create(config_map("ada", "a", "1")).await;
    answers.recv().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_not_declared_is_refused_with_what_to_declare() {
    let world = World::start().await;
    let refusals = once(&world, Controller::owns::<Service>, async |ctx| {
        let undeclared = ctx.get::<Secret>("ada").await.unwrap_err();
        let partial = ctx.list::<Service>().await.unwrap_err();
        Ok([undeclared.to_string(), partial.to_string()])
    })
    .await;
    assert_eq!(
        refusals,
        [
            "Secret is not cached: declare it with `.reads::<Secret>()`, or read it with `ctx.client()`",
            "only the metadata of Service is cached: declare `.reads::<Service>()`, or read `PartialObjectMeta<Service>`",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_read_of_owned_kinds() {
    let world = World::start().await;
    world.create(secret("bob")).await;
    let names = once(&world, Controller::owns::<Secret>, async |ctx| {
        let secrets = ctx.list::<PartialObjectMeta<Secret>>().await?;
        Ok(secrets.iter().map(|secret| secret.name_any()).collect::<Vec<_>>())
    })
    .await;
    assert_eq!(names, ["bob"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_reads_what_it_wrote_by_whichever_way() {
    let world = World::start().await;
    let declare = |controller: Controller<ConfigMap>| controller.owns::<Secret>().reads::<Secret>();
    let seen = once(&world, declare, async |ctx| {
        let mut seen = Vec::new();
        let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
        let mut look = async |what: &str| -> Result<()> {
            let names: Vec<_> = ctx.list::<Secret>().await?.iter().map(|secret| secret.name_any()).collect();
            let labels = ctx.get::<Secret>("bob").await?.map(|secret| secret.labels().clone()).unwrap_or_default();
            seen.push(format!("{what}: {names:?} {labels:?}"));
            Ok(())
        };
        for _ in 0..20 {
            secrets.create(&PostParams::default(), &secret("bob")).await?;
            look("created").await?;
            let labels = json!({ "metadata": { "labels": { "team": "blue" } } });
            secrets.patch("bob", &PatchParams::default(), &Patch::Merge(labels)).await?;
            look("patched").await?;
            ctx.apply(Secret::default()).await?;
            look("applied").await?;
            secrets.delete("bob", &DeleteParams::default()).await?;
            look("deleted").await?;
            secrets.delete("ada", &DeleteParams::default()).await?;
            look("deleted too").await?;
        }
        Ok(seen)
    })
    .await;
    let expected = [
        r#"created: ["bob"] {}"#,
        r#"patched: ["bob"] {"team": "blue"}"#,
        r#"applied: ["ada", "bob"] {"team": "blue"}"#,
        r#"deleted: ["ada"] {}"#,
        "deleted too: [] {}",
    ];
    assert_eq!(seen, expected.repeat(20));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_as_soon_as_it_is_deleted_is_not_read() {
    let world = World::start().await;
    let found = once(&world, Controller::reads::<Pod>, async |ctx| {
        let pods: Api<Pod> = Api::namespaced(ctx.client(), "default");
        let pod = json!({ "metadata": { "name": "ada" }, "spec": { "containers": [{ "name": "a", "image": "b" }] } });
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let before = ctx.get::<Pod>("ada").await?.is_some();
        let answer = pods.delete("ada", &DeleteParams::default()).await?;
        Ok((before, answer.is_left(), ctx.get::<Pod>("ada").await?.is_some()))
    })
    .await;
    assert_eq!(found, (true, true, false));
}

#[tokio::test(start_paused = true)]
async fn owned_children_are_those_it_controls() {
    let world = World::start().await;
    world.create(secret("bob")).await;
    let declare = |controller: Controller<ConfigMap>| controller.owns::<Secret>().reads::<Secret>();
    let (owned, dependents) = once(&world, declare, async |ctx| {
        ctx.apply(secret("child")).await?;
        let owned: Vec<_> = ctx.owned::<Secret>().await?.iter().map(|secret| secret.name_any()).collect();
        let dependents = ctx.dependents().await?.into_iter();
        let dependents = dependents.map(|dependent| (dependent.resource.kind.clone(), dependent.object.name_any()));
        Ok((owned, dependents.collect::<Vec<_>>()))
    })
    .await;
    assert_eq!(owned, ["child"]);
    assert_eq!(dependents, [("Secret".to_owned(), "child".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_once_however_many_controllers_need_it() {
    let world = World::start().await;
    async fn idle(_: Arc<ConfigMap>, _: Context) -> Result {
        Ok(Action::await_change())
    }
    let controller = Controller::new(idle).owns::<Secret>();
    let operator = Operator::new("many")
        .controller(controller.clone().named("first"))
        .controller(controller.clone().named("second").reads::<Secret>());
    let _running = world.run(&operator.controller(controller)).await;
    crate::world::pass(std::time::Duration::from_secs(1)).await;
    let lists = |plural: &str| {
        let list = format!("GET /api/v1/{plural}?&limit");
        world.requests().iter().filter(|request| request.starts_with(&list)).count()
    };
    assert_eq!((lists("configmaps"), lists("secrets")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_object_goes_with_its_last_finalizer_and_is_not_read_after_that() {
    let world = World::start().await;
    world.break_with(|request| crate::claiming::silence(request, "/secrets", "watch="));
    let seen = once(&world, Controller::reads::<Secret>, async |ctx| {
        let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
        let held = json!({ "metadata": { "name": "bob", "finalizers": ["example.dev/one", "example.dev/two"] } });
        secrets.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
        secrets.delete("bob", &DeleteParams::default()).await?;
        let mut seen = Vec::new();
        for left in [json!(["example.dev/two"]), json!(null)] {
            let patch = Patch::Merge(json!({ "metadata": { "finalizers": left } }));
            secrets.patch("bob", &PatchParams::default(), &patch).await?;
            seen.push(ctx.get::<Secret>("bob").await?.is_some());
        }
        Ok(seen)
    })
    .await;
    assert_eq!(seen, [true, false]);
}
