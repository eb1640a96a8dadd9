//! Waiting for a dependency, conditions, events about other objects, and what an apply would change.

use crate::{
    reading::once,
    world::{World, config_map, pass, widgets},
};
use flyball::{Action, Context, Controller, Event, Operator, Outcome, Result};
use k8s_openapi::{
    api::core::v1::{ObjectReference, Secret, Service},
    api::events::v1::Event as Published,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{sync::Arc, time::Duration};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.dev",
    version = "v1",
    kind = "Page",
    namespaced,
    status = "PageStatus"
)]
struct PageSpec {}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct PageStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

/// Waits for the Widget of its name, then says that it is printed.
async fn print(page: Arc<Page>, ctx: Context) -> Result {
    let kind = widgets();
    if let Some(widget) = ctx.dynamic(&kind).get(&*page.name_any()).await? {
        ctx.ready(&*widget)?;
    }
    let conditions: Vec<Condition> = ctx.conditions().set("Printed", true, "Done", "").into();
    ctx.set_status(json!({ "conditions": conditions })).await?;
    Ok(Action::await_change())
}

fn condition<'a>(page: &'a Page, r#type: &str) -> Option<&'a Condition> {
    page.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == r#type)
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_dependency_is_a_condition_and_no_failure() {
    let world = World::start().await;
    let resource = world.install_widgets().await;
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &resource);
    let status = |ready: &str| {
        let condition = json!({ "type": "Ready", "status": ready, "message": "it is being painted" });
        Patch::Merge(json!({ "status": { "conditions": [condition] } }))
    };
    api.create(&PostParams::default(), &DynamicObject::new("ada", &resource)).await.unwrap();
    api.patch_status("ada", &PatchParams::default(), &status("False")).await.unwrap();

    let controller = Controller::new(print).dynamic(&resource, |kind| kind.reads()).ready_condition();
    let running = world.run(&Operator::new("printer").crd(Page::crd()).controller(controller)).await;
    world.create(Page::new("ada", PageSpec {})).await;
    let waiting = world.until("ada", |page: &Page| condition(page, "Ready").is_some()).await;
    let ready = condition(&waiting, "Ready").unwrap();
    let said = (ready.status.as_str(), ready.reason.as_str(), ready.message.as_str());
    assert_eq!(said, ("False", "Waiting", "waiting for Widget default/ada: it is being painted"));
    assert!(condition(&waiting, "Printed").is_none());
    pass(Duration::from_secs(300)).await;
    let events = world.api::<Published>().list(&ListParams::default()).await.unwrap();
    assert_eq!(events.items.len(), 0, "{events:?}");
    assert!(running.queues(10).iter().all(|queue| queue.failing.is_empty()));

    api.patch_status("ada", &PatchParams::default(), &status("True")).await.unwrap();
    let is_true = |page: &Page, r#type| condition(page, r#type).is_some_and(|condition| condition.status == "True");
    world.until("ada", |page: &Page| is_true(page, "Ready") && is_true(page, "Printed")).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_ready_ends_a_reconcile_with_what_it_lacks() {
    let world = World::start().await;
    let answers = once(&world, |controller| controller, async |ctx| {
        let claim = |phase: &str| {
            let metadata = json!({ "name": "disk", "namespace": "default" });
            json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "status": { "phase": phase } })
        };
        let lacking = ctx.ready(&claim("Pending")).unwrap_err();
        assert_eq!(lacking.outcome(), Outcome::Waiting);
        Ok((lacking.to_string(), ctx.ready(&claim("Bound")).is_ok()))
    })
    .await;
    let expected = "waiting for PersistentVolumeClaim default/disk: it is not bound, but Pending";
    assert_eq!(answers, (expected.to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn an_event_may_be_about_another_object() {
    let world = World::start().await;
    let bob = world.create(config_map("bob", "a", "1")).await;
    let about = bob.object_ref(&());
    let refusal = once(
        &world,
        |controller| controller,
        move |ctx| {
            let about = about.clone();
            async move {
                ctx.event_about(&about, Event::warning("Blamed", "ada says so"))?;
                let nothing = ObjectReference { kind: None, ..about };
                Ok(ctx.event_about(&nothing, Event::warning("Blamed", "")).unwrap_err().to_string())
            }
        },
    )
    .await;
    assert_eq!(refusal, "publish event: the reference has no kind");
    pass(Duration::from_secs(5)).await;
    let events = world.api::<Published>().list(&ListParams::default()).await.unwrap();
    let regarding = events.items[0].regarding.clone().unwrap();
    assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("ConfigMap"), Some("bob")));
    assert_eq!((regarding.uid, events.items.len()), (bob.uid(), 1));
}

fn service(port: i32) -> Service {
    let spec = json!({ "ports": [{ "name": "web", "port": port, "targetPort": 8080 }], "selector": { "app": "ada" } });
    serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_diff_says_what_an_apply_would_change_and_writes_nothing() {
    let world = World::start().await;
    let ((is_new, before), after, undeclared) = once(&world, Controller::owns::<Service>, async |ctx| {
        let missing = ctx.diff(service(80)).await?;
        let is_new = !missing.exists && !missing.is_empty();
        let created: Vec<_> = missing.differences.iter().map(|it| it.path.clone()).collect();
        ctx.apply(service(80)).await?;
        assert!(ctx.diff(service(80)).await?.is_empty());
        let mut changed = service(80);
        changed
            .spec
            .as_mut()
            .unwrap()
            .selector
            .as_mut()
            .unwrap()
            .insert("app".into(), "bob".into());
        changed.spec.as_mut().unwrap().session_affinity = Some("ClientIP".into());
        let changed = ctx.diff(changed).await?;
        let undeclared = ctx.diff(Secret::default()).await.unwrap_err().to_string();
        Ok(((is_new, created), changed.to_string(), undeclared))
    })
    .await;
    assert!(is_new && before.iter().any(|path| path.starts_with("spec.ports")), "{before:?}");
    assert!(after.contains("spec.selector.app: \"ada\" -> \"bob\""), "{after}");
    assert!(after.contains("spec.sessionAffinity: \"None\" -> \"ClientIP\""), "{after}");
    assert_eq!(
        undeclared,
        "apply Secret: the controller does not own Secret: add `.owns::<Secret>()` to it"
    );
    let writes = world.writes();
    assert_eq!(
        writes.iter().filter(|it| it.contains("/services/") && !it.contains("dryRun=All")).count(),
        1,
        "{writes:?}"
    );
    let live = world.api::<Service>().get("ada").await.unwrap();
    assert_eq!(live.spec.unwrap().selector.unwrap()["app"], "ada");
}
