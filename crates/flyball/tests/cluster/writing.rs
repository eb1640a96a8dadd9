//! Reads after writes whose answer is not the object: they are never older than the write, and cost one request each.

use crate::{
    reading::once,
    world::{World, pass},
};
use flyball::Controller;
use flyball_test::Answer;
use http::Method;
use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::{v1, v2},
    core::v1::{Pod, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams, Request},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

fn object<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn pod(name: &str, finalizers: &[&str]) -> Pod {
    let metadata = json!({ "name": name, "finalizers": finalizers });
    object(json!({ "metadata": metadata, "spec": { "containers": [{ "name": "a", "image": "b" }] } }))
}

fn deployment() -> Deployment {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "a", "image": "b" }] },
    });
    let spec = json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template });
    object(json!({ "metadata": { "name": "web" }, "spec": spec }))
}

fn count(world: &World, request: &str) -> usize {
    world.requests().iter().filter(|made| *made == request).count()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_read_as_it_was_scaled() {
    let world = World::start().await;
    let seen = once(&world, Controller::reads::<Deployment>, async |ctx| {
        let deployments: Api<Deployment> = Api::namespaced(ctx.client(), "default");
        deployments.create(&PostParams::default(), &deployment()).await?;
        let mut seen = Vec::new();
        for replicas in 2..=21 {
            let patch = json!({ "spec": { "replicas": replicas } });
            deployments.patch_scale("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
            let read = ctx.get::<Deployment>("web").await?;
            seen.push(read.and_then(|read| read.spec.as_ref()?.replicas));
        }
        Ok(seen)
    })
    .await;
    assert_eq!(seen, (2..=21).map(Some).collect::<Vec<_>>());
    assert_eq!(
        count(&world, "GET /apis/apps/v1/namespaces/default/deployments/web"),
        20,
        "one read a write"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_evicted_is_read_as_gone_or_going() {
    let world = World::start().await;
    let seen = once(&world, Controller::reads::<Pod>, async |ctx| {
        let pods: Api<Pod> = Api::namespaced(ctx.client(), "default");
        let mut seen = Vec::new();
        for finalizers in [&[][..], &["example.dev/held"]] {
            pods.create(&PostParams::default(), &pod("ada", finalizers)).await?;
            pods.evict("ada", &EvictParams::default()).await?;
            let read = ctx.get::<Pod>("ada").await?;
            seen.push(read.map(|pod| pod.metadata.deletion_timestamp.is_some()));
        }
        Ok(seen)
    })
    .await;
    assert_eq!(seen, [None, Some(true)]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_read_with_the_node_that_it_was_bound_to() {
    let world = World::start().await;
    let seen = once(&world, Controller::reads::<Pod>, async |ctx| {
        let pods: Api<Pod> = Api::namespaced(ctx.client(), "default");
        let mut seen = Vec::new();
        for (name, path) in [("ada", "pods/ada/binding"), ("bob", "bindings")] {
            pods.create(&PostParams::default(), &pod(name, &[])).await?;
            let target = json!({ "kind": "Node", "name": format!("{name}s-node") });
            let binding =
                json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name }, "target": target });
            let request = Request::new("/api/v1/namespaces/default").create(&PostParams::default(), Vec::new())?;
            let (mut head, _) = request.into_parts();
            head.uri = format!("/api/v1/namespaces/default/{path}").parse()?;
            let request = http::Request::from_parts(head, binding.to_string().into_bytes());
            ctx.client().request::<Value>(request).await?;
            let read = ctx.get::<Pod>(name).await?;
            seen.push(read.and_then(|pod| pod.spec.as_ref()?.node_name.clone()));
        }
        Ok(seen)
    })
    .await;
    assert_eq!(seen, [Some("adas-node".to_owned()), Some("bobs-node".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_read_as_it_is_after_its_deletion() {
    let world = World::start().await;
    let seen = once(&world, Controller::reads::<Secret>, async |ctx| {
        let secrets: Api<Secret> = Api::namespaced(ctx.client(), "default");
        let mut seen = Vec::new();
        for (name, team, finalizers) in [
            ("ada", "blue", &[][..]),
            ("bob", "blue", &[]),
            ("eve", "blue", &["example.dev/held"]),
            ("fay", "red", &[]),
        ] {
            let metadata = json!({ "name": name, "labels": { "team": team }, "finalizers": finalizers });
            secrets.create(&PostParams::default(), &object(json!({ "metadata": metadata }))).await?;
        }
        for selected in [ListParams::default().labels("team=blue"), ListParams::default()] {
            secrets.delete_collection(&DeleteParams::default(), &selected).await?;
            let read = ctx.list::<Secret>().await?;
            let names = read
                .iter()
                .map(|secret| (secret.name_any(), secret.metadata.deletion_timestamp.is_some()));
            seen.push(names.collect::<Vec<_>>());
        }
        Ok(seen)
    })
    .await;
    let eve = ("eve".to_owned(), true);
    assert_eq!(seen, [vec![eve.clone(), ("fay".to_owned(), false)], vec![eve]]);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_as_it_was_written_in_another_version_of_its_kind() {
    let world = World::start().await;
    let seen = once(&world, Controller::reads::<v2::HorizontalPodAutoscaler>, async |ctx| {
        let autoscalers: Api<v1::HorizontalPodAutoscaler> = Api::namespaced(ctx.client(), "default");
        let read = async || {
            let read = ctx.get::<v2::HorizontalPodAutoscaler>("web").await?;
            flyball::Result::<_>::Ok(read.map(|read| read.spec.max_replicas))
        };
        let mut seen = Vec::new();
        let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
        let spec = json!({ "maxReplicas": 3, "scaleTargetRef": target });
        let created = object(json!({ "metadata": { "name": "web" }, "spec": spec }));
        autoscalers.create(&PostParams::default(), &created).await?;
        seen.push(read().await?);
        let patch = Patch::Merge(json!({ "spec": { "maxReplicas": 5 } }));
        autoscalers.patch("web", &PatchParams::default(), &patch).await?;
        seen.push(read().await?);
        autoscalers.delete("web", &DeleteParams::default()).await?;
        seen.push(read().await?);
        Ok(seen)
    })
    .await;
    assert_eq!(seen, [Some(3), Some(5), None]);
}

#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_is_tried_again_and_its_failure_is_told() {
    let world = World::start().await;
    let failing = world.clone();
    let (once_failed, failed) = once(&world, Controller::reads::<Deployment>, move |ctx| {
        let world = failing.clone();
        async move {
            let deployments: Api<Deployment> = Api::namespaced(ctx.client(), "default");
            deployments.create(&PostParams::default(), &deployment()).await?;
            let scale = async |replicas: i32, failures: usize| {
                let mut left = failures;
                world.break_with(move |request| {
                    let reads = request.method() == Method::GET && request.uri().path().ends_with("/deployments/web");
                    let fails = reads && left > 0;
                    left -= usize::from(fails);
                    fails.then(|| Answer::text(503, "{}"))
                });
                let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
                let scaled = deployments.patch_scale("web", &PatchParams::default(), &patch).await;
                let read = ctx.get::<Deployment>("web").await?.and_then(|read| read.spec.as_ref()?.replicas);
                flyball::Result::<_>::Ok((scaled.map(|_| read), world.mend()).0)
            };
            Ok((scale(7, 2).await?, scale(8, usize::MAX).await?))
        }
    })
    .await;
    assert_eq!(once_failed.unwrap(), Some(7));
    let told = failed.unwrap_err();
    let told =
        std::iter::successors(Some(&told as &dyn std::error::Error), |error| error.source()).map(ToString::to_string);
    let told = told.collect::<Vec<_>>().join(": ");
    assert!(
        told.contains(
            "the write was done, but /apis/apps/v1/namespaces/default/deployments/web cannot be read after it: 503"
        ),
        "{told}"
    );
    pass(Duration::from_secs(1)).await;
}
