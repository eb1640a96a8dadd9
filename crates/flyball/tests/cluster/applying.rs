//! What `apply` and `set_status` write, and when they write nothing.

use crate::world::{World, config_map, pass};
use flyball::{Action, Applied, Context, Controller, Key, Operator, Result, Selection};
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{ConfigMap, Namespace, Secret},
        scheduling::v1::PriorityClass,
    },
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// Keeps a Secret beside every ConfigMap, with the same entries.
async fn mirror(map: Arc<ConfigMap>, ctx: Context) -> Result {
    ctx.apply(Secret { data: Some(entries(&map)), ..Default::default() }).await?;
    Ok(Action::await_change())
}

fn entries(map: &ConfigMap) -> BTreeMap<String, ByteString> {
    let entries = map.data.iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), ByteString(value.clone().into_bytes())))
        .collect()
}

fn mirrorer() -> Operator {
    Operator::new("mirrorer").controller(Controller::new(mirror).owns::<Secret>())
}

fn value(secret: &Secret) -> Option<&[u8]> {
    Some(&secret.data.as_ref()?.get("a")?.0)
}

#[tokio::test(start_paused = true)]
async fn a_child_takes_name_and_namespace_from_its_owner_and_belongs_to_it() {
    let world = World::start().await;
    let _running = world.run(&mirrorer()).await;
    let owner = world.create(config_map("ada", "a", "1")).await;

    let child: Secret = world.until("ada", |secret| value(secret).is_some()).await;
    assert_eq!(child.metadata.namespace.as_deref(), Some("default"));
    let reference = &child.metadata.owner_references.unwrap()[0];
    assert_eq!((reference.kind.as_str(), reference.name.as_str()), ("ConfigMap", "ada"));
    assert_eq!(Some(&reference.uid), owner.metadata.uid.as_ref());
    assert_eq!((reference.controller, reference.block_owner_deletion), (Some(true), Some(true)));
    let manager = &child.metadata.managed_fields.unwrap()[0];
    assert_eq!(manager.manager.as_deref(), Some("mirrorer"));
    assert_eq!(manager.operation.as_deref(), Some("Apply"));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_as_it_should_be_costs_no_request() {
    let world = World::start().await;
    let _running = world.run(&mirrorer()).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |secret: &Secret| value(secret).is_some()).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.writes().len(), 1);

    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "seen": "again" } } }))
        .await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn drift_is_corrected_and_a_deleted_child_comes_back() {
    let world = World::start().await;
    let _running = world.run(&mirrorer()).await;
    world.create(config_map("ada", "a", "1")).await;
    let first: Secret = world.until("ada", |secret| value(secret) == Some(b"1")).await;

    world.merge::<Secret>("ada", json!({ "stringData": { "a": "tampered" } })).await;
    world.until("ada", |secret: &Secret| value(secret) == Some(b"1")).await;

    world.delete::<Secret>("ada").await;
    let second: Secret = world.until("ada", |secret| value(secret) == Some(b"1")).await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
}

/// As the garbage collector deletes children whose owner is gone, while the watch of the owner's kind lags behind.
#[tokio::test(start_paused = true)]
async fn a_child_is_not_made_again_for_an_object_that_is_gone_and_only_cached() {
    let world = World::start().await;
    world.create(config_map("ada", "a", "1")).await;
    world.break_with(|request| crate::claiming::silence(request, "/configmaps", "watch="));
    let _running = world.run(&mirrorer()).await;
    world.until("ada", |secret: &Secret| value(secret) == Some(b"1")).await;
    world.delete::<ConfigMap>("ada").await;
    world.delete::<Secret>("ada").await;
    pass(Duration::from_secs(30)).await;
    world.until_gone::<Secret>("ada").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_applied_goes_and_what_others_set_stays() {
    let world = World::start().await;
    let _running = world.run(&mirrorer()).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |secret: &Secret| value(secret).is_some()).await;
    world
        .merge::<Secret>("ada", json!({ "metadata": { "labels": { "team": "blue" } } }))
        .await;

    world.merge::<ConfigMap>("ada", json!({ "data": { "a": null, "b": "2" } })).await;
    let child: Secret = world.until("ada", |secret: &Secret| value(secret).is_none()).await;
    assert_eq!(child.data.unwrap()["b"].0, b"2");
    assert_eq!(child.metadata.labels.unwrap()["team"], "blue");
}

#[tokio::test(start_paused = true)]
async fn required_fields_that_an_author_leaves_unset_are_left_to_whoever_sets_them() {
    async fn scale(_: Arc<ConfigMap>, ctx: Context) -> Result {
        let spec = DeploymentSpec { replicas: Some(3), ..Default::default() };
        ctx.apply(Deployment { spec: Some(spec), ..Default::default() }).await?;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let labels = json!({ "app": "ada" });
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "ada" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "b" }] } },
        },
    }))
    .unwrap();
    world.create(deployment).await;
    let _running = world
        .run(&Operator::new("scaler").controller(Controller::new(scale).needs::<Deployment>(["patch"])))
        .await;
    world.create(config_map("ada", "a", "1")).await;

    let replicas = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas;
    let deployment: Deployment = world.until("ada", |deployment| replicas(deployment) == Some(3)).await;
    let spec = deployment.spec.unwrap();
    assert_eq!(spec.selector.match_labels.unwrap()["app"], "ada");
    assert_eq!(spec.template.spec.unwrap().containers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_belong_to_its_owner_is_refused_by_name() {
    let world = World::start().await;
    let (sender, mut refusals) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let mut elsewhere = Secret::default();
            elsewhere.metadata.namespace = Some("kube-system".into());
            sender.send(ctx.apply(elsewhere).await.unwrap_err().to_string())?;
            sender.send(ctx.apply(Namespace::default()).await.unwrap_err().to_string())?;
            sender.send(ctx.apply(ConfigMap::default()).await.unwrap_err().to_string())?;
            Ok(Action::await_change())
        }
    };
    let controller = Controller::new(reconcile).owns::<Secret>().owns::<Namespace>().owns::<ConfigMap>();
    let _running = world.run(&Operator::new("misfit").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;

    let expected = [
        "apply Secret kube-system/ada: a child lives in its owner's namespace, which is default",
        "apply Namespace ada: a cluster-scoped object cannot belong to one in a namespace",
        "apply ConfigMap default/ada: an object cannot be its own child",
    ];
    for expected in expected {
        assert_eq!(refusals.recv().await.unwrap(), expected);
    }
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_apply_says_what_it_did() {
    let world = World::start().await;
    let (sender, mut answers) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            for _ in 0..2 {
                let data = Some(entries(&map));
                sender.send(ctx.apply(Secret { data, ..Default::default() }).await?)?;
            }
            Ok(Action::await_change())
        }
    };
    let operator = Operator::new("teller").controller(Controller::new(reconcile).owns::<Secret>());
    let _running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    world.until("ada", |secret: &Secret| value(secret) == Some(b"1")).await;
    pass(Duration::from_secs(1)).await;
    world.merge::<ConfigMap>("ada", json!({ "data": { "a": "2" } })).await;
    world.until("ada", |secret: &Secret| value(secret) == Some(b"2")).await;
    pass(Duration::from_secs(1)).await;

    let mut told: Vec<Applied> = Vec::new();
    while let Ok(applied) = answers.try_recv() {
        told.push(applied);
    }
    told.dedup();
    assert_eq!(
        told,
        [
            Applied::Created,
            Applied::Unchanged,
            Applied::Configured,
            Applied::Unchanged
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_once_and_leaves_what_others_wrote() {
    async fn report(deployment: Arc<Deployment>, ctx: Context) -> Result {
        let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        ctx.set_status(json!({ "replicas": replicas, "updatedReplicas": null })).await?;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let _running = world.run(&Operator::new("reporter").controller(Controller::new(report))).await;
    let labels = json!({ "app": "ada" });
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "ada" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "b" }] } },
        },
    }))
    .unwrap();
    world.create(deployment).await;
    let replicas = |deployment: &Deployment| deployment.status.as_ref().and_then(|status| status.replicas);
    world.until("ada", |deployment: &Deployment| replicas(deployment) == Some(3)).await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(
        world.writes(),
        ["PATCH /apis/apps/v1/namespaces/default/deployments/ada/status?&force=true&fieldManager=reporter"]
    );

    let other = json!({ "status": { "readyReplicas": 1 } });
    let api = world.api::<Deployment>();
    api.patch_status("ada", &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.writes(), [""; 0]);
    let status = api.get("ada").await.unwrap().status.unwrap();
    assert_eq!((status.replicas, status.ready_replicas), (Some(3), Some(1)));
}

fn deployment(name: &str) -> Deployment {
    let labels = json!({ "app": name });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "b" }] } });
    let spec = json!({ "replicas": 3, "selector": { "matchLabels": labels }, "template": template });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

/// An operator that says more of an object for as long as its label `brief` is missing.
fn reporter() -> Operator {
    async fn report(deployment: Arc<Deployment>, ctx: Context) -> Result {
        let condition = |name: &str| json!({ "type": name, "status": "True" });
        let brief = deployment.labels().contains_key("brief");
        let status = if brief {
            json!({ "replicas": 3, "conditions": [condition("Kept")] })
        } else {
            json!({ "replicas": 3, "updatedReplicas": 2, "conditions": [condition("Kept"), condition("Gone")] })
        };
        ctx.set_status(status).await?;
        Ok(Action::await_change())
    }
    Operator::new("reporter").controller(Controller::new(report))
}

async fn be_brief(world: &World) -> (Option<i32>, Option<i32>, Vec<String>) {
    world
        .merge::<Deployment>("ada", json!({ "metadata": { "labels": { "brief": "yes" } } }))
        .await;
    pass(Duration::from_secs(1)).await;
    let status = world.api::<Deployment>().get("ada").await.unwrap().status.unwrap();
    let conditions = status.conditions.unwrap_or_default();
    (
        status.updated_replicas,
        status.ready_replicas,
        conditions.into_iter().map(|condition| condition.type_).collect(),
    )
}

async fn say_something_too(world: &World) {
    let condition = json!({ "type": "Foreign", "status": "True" });
    let mut conditions = vec![condition];
    let api = world.api::<Deployment>();
    let status = api.get("ada").await.unwrap().status.unwrap();
    conditions.extend(status.conditions.iter().flatten().map(|known| serde_json::to_value(known).unwrap()));
    let other = json!({ "status": { "readyReplicas": 1, "conditions": conditions } });
    let params = PatchParams {
        field_manager: Some("somebody".into()),
        ..PatchParams::default()
    };
    api.patch_status("ada", &params, &Patch::Merge(other)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_in_a_status_goes_by_the_same_write() {
    let world = World::start().await;
    let _running = world.run(&reporter()).await;
    world.create(deployment("ada")).await;
    pass(Duration::from_secs(1)).await;
    world.writes();

    assert_eq!(be_brief(&world).await, (None, None, vec!["Kept".into()]));
    let status = |request: &String| request.contains("/ada");
    let requests: Vec<String> = world.writes().into_iter().filter(status).collect();
    assert_eq!(requests.len(), 1, "one for the status: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_in_a_shared_status_goes_and_what_others_set_stays() {
    let world = World::start().await;
    let _running = world.run(&reporter()).await;
    world.create(deployment("ada")).await;
    pass(Duration::from_secs(1)).await;
    say_something_too(&world).await;

    let left = vec!["Foreign".into(), "Kept".into()];
    assert_eq!(be_brief(&world).await, (None, Some(1), left));
}

#[tokio::test(start_paused = true)]
async fn what_another_process_of_the_operator_set_in_a_status_goes_too() {
    let world = World::start().await;
    let running = world.run(&reporter()).await;
    world.create(deployment("ada")).await;
    pass(Duration::from_secs(1)).await;
    say_something_too(&world).await;
    pass(Duration::from_secs(1)).await;
    running.stop().await;
    let _running = world.run(&reporter()).await;
    pass(Duration::from_secs(1)).await;

    let left = vec!["Foreign".into(), "Kept".into()];
    assert_eq!(be_brief(&world).await, (None, Some(1), left));
}

#[tokio::test(start_paused = true)]
async fn a_key_names_what_a_reconcile_reads_elsewhere() {
    let world = World::start().await;
    let (sender, mut found) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            let here = ctx.get::<Secret>("ada").await?;
            let elsewhere = ctx.get::<Secret>(Key::namespaced("kube-system", "ada")).await?;
            sender.send((here.is_some(), elsewhere.is_some()))?;
            Ok(Action::await_change())
        }
    };
    let secret: Secret = serde_json::from_value(json!({ "metadata": { "name": "ada" } })).unwrap();
    world.create(secret).await;
    let operator = Operator::new("reader").controller(Controller::new(reconcile).reads::<Secret>());
    let _running = world.run(&operator).await;
    world.create(config_map("ada", "a", "1")).await;
    assert_eq!(found.recv().await, Some((true, false)));
}

#[tokio::test(start_paused = true)]
async fn drift_is_corrected_where_generations_are_not_counted_though_there_is_one() {
    async fn rank(namespace: Arc<Namespace>, ctx: Context) -> Result {
        if namespace.name_any() == "ada" {
            let class = PriorityClass {
                value: Some(7),
                description: Some("ours".into()),
                ..Default::default()
            };
            ctx.apply(class).await?;
        }
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let controller = Controller::new(rank).owns::<PriorityClass>();
    let _running = world.run(&Operator::new("ranker").controller(controller)).await;
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": "ada" } })).unwrap();
    Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    pass(Duration::from_secs(1)).await;
    let classes = Api::<PriorityClass>::all(world.client.clone());
    let theirs = Patch::Merge(json!({ "description": "theirs" }));
    let changed = classes.patch("ada", &PatchParams::default(), &theirs).await.unwrap();
    assert_eq!((changed.description.as_deref(), changed.metadata.generation), (Some("theirs"), Some(1)));
    pass(Duration::from_secs(1)).await;
    assert_eq!(classes.get("ada").await.unwrap().description.as_deref(), Some("ours"));
}

#[tokio::test(start_paused = true)]
async fn a_child_may_name_its_owner_itself() {
    async fn keep(_: Arc<ConfigMap>, ctx: Context) -> Result {
        let mut secret = Secret::default();
        secret.metadata.owner_references = Some(vec![ctx.owner_reference()]);
        ctx.apply(secret).await?;
        Ok(Action::await_change())
    }
    let world = World::start().await;
    let _running = world
        .run(&Operator::new("keeper").controller(Controller::new(keep).owns::<Secret>()))
        .await;
    world.create(config_map("ada", "a", "1")).await;
    let secret: Secret = world.until("ada", |_| true).await;
    let owners = secret.metadata.owner_references.unwrap();
    assert_eq!((owners.len(), owners[0].controller), (1, Some(true)));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_cached_in_part_costs_no_request_either() {
    let world = World::start().await;
    let bare =
        Selection::default().transform(|secret| drop(secret["metadata"].as_object_mut().unwrap().remove("labels")));
    async fn label(_: Arc<ConfigMap>, ctx: Context) -> Result {
        let mut secret = deployment("ada");
        secret.metadata.labels = Some([("of".to_owned(), "ours".to_owned())].into());
        ctx.apply(secret).await?;
        Ok(Action::await_change())
    }
    let controller = Controller::new(label).owns::<Deployment>().select::<Deployment>(bare);
    let _running = world.run(&Operator::new("labeller").controller(controller)).await;
    world.create(config_map("ada", "a", "1")).await;
    pass(Duration::from_secs(1)).await;
    world.writes();
    world
        .merge::<ConfigMap>("ada", json!({ "metadata": { "labels": { "seen": "again" } } }))
        .await;
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_child_is_refused_with_the_line_to_add() {
    let world = World::start().await;
    let (sender, mut refusals) = mpsc::unbounded_channel();
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context| {
        let sender = sender.clone();
        async move {
            sender.send(ctx.apply(Secret::default()).await.unwrap_err().to_string())?;
            sender.send(ctx.prune::<Secret>().await.unwrap_err().to_string())?;
            Ok(Action::await_change())
        }
    };
    let _running = world.run(&Operator::new("forgetful").controller(Controller::new(reconcile))).await;
    world.create(config_map("ada", "a", "1")).await;
    for verb in ["apply", "prune"] {
        let expected = format!("{verb} Secret: the controller does not own Secret: add `.owns::<Secret>()` to it");
        assert_eq!(refusals.recv().await.unwrap(), expected);
    }
    assert_eq!(world.writes(), [""; 0]);
}
