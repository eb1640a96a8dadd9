//! Kinds that may not be installed: nothing waits for them, and they are used as soon as they are.

use crate::{
    reading::once,
    world::{World, config_map, pass, widgets},
};
use flyball::{Action, Applied, Context, Controller, Manifests, Operator, Running};
use http::Request;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// Keeps one Widget beside every ConfigMap where Widgets are installed, and says so in an annotation.
fn keeper() -> Operator {
    let keep = move |map: Arc<ConfigMap>, ctx: Context| async move {
        if map.name_any() == "kube-root-ca.crt" {
            return Ok(Action::await_change());
        }
        let kind = widgets();
        let applied = ctx.dynamic(&kind).apply(DynamicObject::new("", &kind)).await?;
        ctx.dynamic(&kind).prune().await?;
        let is_there = ctx.dynamic(&kind).metadata().get(&*map.name_any()).await?.is_some();
        assert_eq!(is_there, applied != Applied::NotInstalled);
        let annotation = json!({ "metadata": { "annotations": { "widget": is_there.to_string() } } });
        ctx.patch::<ConfigMap>(&*map.name_any(), &kube::api::Patch::Merge(annotation)).await?;
        Ok(Action::await_change())
    };
    let controller = Controller::new(keep).dynamic(&widgets(), |kind| kind.owns().optional());
    Operator::new("keeper").controller(controller)
}

async fn readyz(running: &Running) -> String {
    let request = Request::get("/readyz?verbose").body(axum::body::Body::empty()).unwrap();
    let router = running.admin(&flyball::Config::default());
    let answer = tower::ServiceExt::oneshot(router, request).await.unwrap();
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(bytes.into()).unwrap()
}

fn says(value: &'static str) -> impl Fn(&ConfigMap) -> bool {
    move |map| map.annotations().get("widget").is_some_and(|said| said == value)
}

#[tokio::test(start_paused = true)]
async fn an_optional_kind_delays_nothing_and_is_used_once_it_is_installed_and_when_it_returns() {
    let world = World::start().await;
    let running = world.run(&keeper()).await;
    let started = Instant::now();
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", says("false")).await;
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
    let ready = readyz(&running).await;
    assert!(
        ready.contains("[+]cache-widgets ok: not installed") && ready.contains("readyz check passed"),
        "{ready}"
    );
    pass(Duration::from_secs(600)).await;
    assert_eq!(running.cache().watches().iter().filter(|watch| watch.last_error.is_some()).count(), 0);
    let asked = world.requests().iter().filter(|request| request.contains("/widgets")).count();
    assert!((30..80).contains(&asked), "{asked} requests in ten minutes");

    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for _ in 0..2 {
        let installed = Instant::now();
        world.install_widgets().await;
        world.until("ada", says("true")).await;
        assert!(installed.elapsed() < Duration::from_secs(11), "{:?}", installed.elapsed());
        assert!(readyz(&running).await.contains("[+]cache-widgets ok\n"));
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &widgets());
        assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);

        definitions.delete("widgets.example.dev", &DeleteParams::default()).await.unwrap();
        let gone = |definition: Option<&CustomResourceDefinition>| definition.is_none();
        let gone = await_condition(definitions.clone(), "widgets.example.dev", gone);
        timeout(Duration::from_secs(3_600), gone).await.unwrap().unwrap();
        world.until("ada", says("false")).await;
        pass(Duration::from_secs(30)).await;
        assert!(readyz(&running).await.contains("[+]cache-widgets ok: not installed"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_optional_kind_that_is_not_installed_reads_as_empty_and_its_deletes_find_nothing() {
    let world = World::start().await;
    let declare = |controller: Controller<ConfigMap>| {
        controller.dynamic(&widgets(), |kind| kind.optional().owns().reads().index("name", |it| vec![it.name_any()]))
    };
    let read = once(&world, declare, async |ctx| {
        let kind = widgets();
        let widgets = ctx.dynamic(&kind);
        Ok((
            widgets.installed().await?,
            widgets.get("a").await?.is_some(),
            widgets.list().await?.len() + widgets.owned().await?.len() + widgets.by_index("name", "a").await?.len(),
            widgets.delete("a", &DeleteParams::default()).await?,
        ))
    })
    .await;
    assert_eq!(read, (false, false, 0, false));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_one_controller_requires_is_a_reason_to_be_unready() {
    let world = World::start().await;
    let idle = |_: Arc<ConfigMap>, _: Context| async { Ok(Action::await_change()) };
    let required = Controller::new(idle).named("other").dynamic(&widgets(), |kind| kind.owns());
    let running = world.run(&keeper().controller(required)).await;
    pass(Duration::from_secs(60)).await;
    let ready = readyz(&running).await;
    assert!(ready.contains("[-]cache-widgets failed"), "{ready}");
}

#[test]
fn an_optional_kind_has_its_rights() {
    let rules: Vec<Value> = Manifests::of(&keeper()).rbac().into_iter().map(|object| object.data).collect();
    assert!(rules.iter().any(|role| role["rules"].to_string().contains("widgets")), "{rules:?}");
}
