//! Pretends to run the pods of the simulated node: starts them, makes them ready, and ends them in time.

mod address;
mod status;
mod timeline;

use crate::{node, owner, pod, refusal};
use address::Addresses;
use flyball::{Action, Context, Controller, Event, Key, Reconciler, Result};
use k8s_openapi::api::core::v1::{Container, Namespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Preconditions},
};
use std::{sync::Arc, time::Duration};
use timeline::{Stage, Timeline};

/// How long it takes to fetch an image and start containers.
const STARTUP: Duration = Duration::from_millis(500);
/// How long containers take to end once they are told to.
const SHUTDOWN: Duration = Duration::from_secs(1);
/// Who a pod's events are from.
const NAME: &str = "kubelet";

/// The controller that runs pods.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::new(Kubelet::default())
        .named("kubelet")
        .reads::<PartialObjectMeta<Namespace>>()
}

#[derive(Default)]
struct Kubelet {
    timeline: Timeline,
    addresses: Addresses,
}

impl Reconciler<Pod> for Kubelet {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        self.run(&pod, &ctx).await
    }

    async fn terminating(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        self.end(&pod, &ctx).await
    }

    fn gone(&self, key: &Key) {
        self.forget(key);
    }
}

impl Kubelet {
    /// Takes a pod one stage further, or says when it is time to.
    async fn run(&self, pod: &Pod, ctx: &Context) -> Result {
        if pod::node(pod) != Some(node::NAME) || pod::has_ended(pod) {
            return Ok(Action::await_change());
        }
        let now = ctx.now();
        if !status::is_begun(pod) {
            ctx.set_status(status::creating(pod, &now)).await?;
        }
        if !status::is_running(pod) {
            if let Some(wait) = self.timeline.wait(pod, Stage::Creating, STARTUP) {
                return Ok(Action::requeue_after(wait));
            }
            let address = self.address(pod, ctx).await?;
            ctx.set_status(status::running(pod, &address, false, &now)).await?;
            announce(pod, ctx);
        }
        if let Some(wait) = self.timeline.wait(pod, Stage::Running, patience(pod)) {
            return Ok(Action::requeue_after(wait));
        }
        let address = self.address(pod, ctx).await?;
        ctx.set_status(status::running(pod, &address, true, &now)).await?;
        Ok(Action::await_change())
    }

    /// Ends a pod that is being deleted: its containers stop, and then it is gone.
    async fn end(&self, pod: &Pod, ctx: &Context) -> Result {
        if pod::node(pod) != Some(node::NAME) {
            return Ok(Action::await_change());
        }
        let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default().max(0) as u64);
        if !grace.is_zero() && !pod::has_ended(pod) {
            if self.timeline.begins(pod, Stage::Ending) && takes_events(pod, ctx)? {
                containers(pod).for_each(|container| {
                    let note = format!("Stopping container {}", container.name);
                    ctx.event(event("Killing", note, container));
                });
            }
            if let Some(wait) = self.timeline.wait(pod, Stage::Ending, SHUTDOWN.min(grace)) {
                return Ok(Action::requeue_after(wait));
            }
        }
        if pod.finalizers().is_empty() {
            return self.remove(pod, ctx).await;
        }
        // Whoever holds the pod back may want to know how it ended.
        if !pod::has_ended(pod) {
            ctx.set_status(status::ended(pod, &ctx.now())).await?;
        }
        if grace.is_zero() {
            Ok(Action::await_change())
        } else {
            self.remove(pod, ctx).await
        }
    }

    async fn remove(&self, pod: &Pod, ctx: &Context) -> Result {
        let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match pods.delete(&pod.name_any(), &params).await {
            Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
            deleted => drop(deleted?),
        }
        Ok(Action::await_change())
    }

    async fn address(&self, pod: &Pod, ctx: &Context) -> Result<String> {
        if pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default() {
            return Ok(node::ADDRESS.into());
        }
        // Waits until all pods are known, so that no address is given out twice.
        ctx.list::<Pod>().await?;
        self.addresses.of(pod, || ctx.cache().list::<Pod>())
    }

    fn forget(&self, key: &Key) {
        self.timeline.forget(key);
        self.addresses.forget(key);
    }
}

/// Whether events about a pod can be written: a namespace that is about to go takes none.
fn takes_events(pod: &Pod, ctx: &Context) -> Result<bool> {
    let namespace = ctx.cache().get::<PartialObjectMeta<Namespace>>(pod.namespace().unwrap_or_default())?;
    Ok(namespace.is_some_and(|namespace| !owner::is_terminating(&namespace.metadata)))
}

/// Tells of each container what users know from `kubectl describe`.
fn announce(pod: &Pod, ctx: &Context) {
    for container in containers(pod) {
        let image = container.image.as_deref().unwrap_or_default();
        let note = format!("Container image {image:?} already present on machine and can be accessed by the pod");
        ctx.event(event("Pulled", note, container));
        ctx.event(event("Created", "Container created".into(), container));
        ctx.event(event("Started", "Container started".into(), container));
    }
}

fn event(reason: &str, note: String, container: &Container) -> Event {
    Event::normal(reason, note)
        .by(NAME)
        .field(format!("spec.containers{{{}}}", container.name))
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.iter().flat_map(|spec| &spec.containers)
}

/// How long a pod's probes make it wait before it can be ready.
fn patience(pod: &Pod) -> Duration {
    let delay = |container: &Container| {
        let probes = [&container.startup_probe, &container.readiness_probe];
        probes.into_iter().flatten().filter_map(|probe| probe.initial_delay_seconds).max()
    };
    let seconds = containers(pod).filter_map(delay).max().unwrap_or_default();
    Duration::from_secs(seconds.max(0) as u64)
}
