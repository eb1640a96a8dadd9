//! Pretends to run the pods of simulated nodes: starts them, makes them ready or fail as they are told to, and ends them in time.

mod address;
mod backoff;
mod heartbeat;
mod run;
mod status;

pub(crate) use heartbeat::register;

use crate::{
    node::{Condition, Network, Nodes},
    owner, pod, refusal,
};
use address::Addresses;
use flyball::{Action, Context, Controller, Event, Key, Operator, Reconciler, Result};
use flyball_host::clock::Clock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PartialObjectMeta, Preconditions},
};
use run::{Notice, PodRun};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::OnceCell, time::Instant};

/// How long containers take to end once they are told to.
const SHUTDOWN: Duration = Duration::from_secs(1);
/// Who a pod's events are from.
const NAME: &str = "kubelet";

/// The kubelets of all simulated nodes as an operator.
pub(crate) fn operator(nodes: &Nodes, clock: Clock) -> Operator {
    let kubelet = Kubelet {
        nodes: nodes.clone(),
        clock,
        runs: Mutex::default(),
        ending: Mutex::default(),
        addresses: Addresses::default(),
        seeded: OnceCell::new(),
    };
    let pods = Controller::new(kubelet)
        .named("kubelet")
        .triggered_by(&nodes.back)
        .reads::<PartialObjectMeta<Namespace>>();
    Operator::new("kubelet").controller(pods).controller(heartbeat::controller(nodes, clock))
}

struct Kubelet {
    nodes: Nodes,
    clock: Clock,
    runs: Mutex<HashMap<Key, PodRun>>,
    /// Since when pods are being ended.
    ending: Mutex<HashMap<Key, (Option<String>, Instant)>>,
    addresses: Addresses,
    seeded: OnceCell<()>,
}

impl Reconciler<Pod> for Kubelet {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        match self.node_of(&pod) {
            Some((_, network)) if !pod::has_ended(&pod) => self.run(&pod, network, &ctx).await,
            _ => Ok(Action::await_change()),
        }
    }

    async fn terminating(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        match self.node_of(&pod) {
            Some((_, network)) => self.end(&pod, network, &ctx).await,
            None => Ok(Action::await_change()),
        }
    }

    fn gone(&self, key: &Key) {
        self.runs().remove(key);
        self.ending.lock().expect("nothing panics under this lock").remove(key);
        self.addresses.forget(key);
    }
}

impl Kubelet {
    /// The node of a pod, if it is a simulated one that is in touch with the API server.
    fn node_of(&self, pod: &Pod) -> Option<(&str, &Network)> {
        let (node, network) = self.nodes.get(pod::node(pod)?)?;
        match self.nodes.condition(&node.name) {
            Condition::Up => Some((&node.name, network)),
            Condition::CutOff => None,
            Condition::Stopped => {
                if let Some(run) = self.runs().get_mut(&Key::of(pod)) {
                    run.kill(self.clock.now());
                }
                None
            }
        }
    }

    /// Brings a pod to where it is now, or says when it is time to look again.
    async fn run(&self, pod: &Pod, network: &Network, ctx: &Context) -> Result {
        let behaviour = match self.nodes.behaviours.of(pod) {
            Ok(behaviour) => behaviour,
            Err(error) => {
                ctx.event(Event::warning("InvalidBehaviour", error.to_string()).by(NAME));
                return Ok(Action::await_change());
            }
        };
        let address = self.address(pod, network, ctx).await?;
        let (now, mut notices) = (self.clock.now(), Vec::new());
        let (status, next) = {
            let mut runs = self.runs();
            let run = runs.entry(Key::of(pod)).or_insert_with(|| PodRun::of(pod, behaviour.clone(), now));
            if run.uid != pod.metadata.uid {
                *run = PodRun::of(pod, behaviour.clone(), now);
            }
            run.behaviour = behaviour;
            let next = run.advance(pod, now, &mut notices);
            let has_begun = !notices.is_empty() || pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
            (status::of(pod, run, network, has_begun.then_some(&*address), now), next)
        };
        ctx.set_status(status).await?;
        notices.into_iter().for_each(|notice| publish(notice, ctx));
        Ok(next.map_or(Action::await_change(), |next| Action::requeue_after(until(next, now))))
    }

    /// Ends a pod that is being deleted: its containers stop, and then it is gone.
    async fn end(&self, pod: &Pod, network: &Network, ctx: &Context) -> Result {
        let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or_default().max(0) as u64);
        if !grace.is_zero() && !pod::has_ended(pod) {
            let (began, is_new) = self.begin_to_end(pod);
            if is_new && takes_events(pod, ctx)? {
                for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                    let note = format!("Stopping container {}", container.name);
                    ctx.event(event(Event::normal("Killing", note), &container.name));
                }
            }
            let left = SHUTDOWN.min(grace).saturating_sub(began.elapsed());
            if !left.is_zero() {
                return Ok(Action::requeue_after(left));
            }
        }
        if pod.finalizers().is_empty() {
            return remove(pod, ctx).await;
        }
        // A controller that holds the pod back may want to know how it ended.
        if !pod::has_ended(pod) {
            ctx.set_status(status::ended(pod, network, self.clock.now())).await?;
        }
        if grace.is_zero() {
            Ok(Action::await_change())
        } else {
            remove(pod, ctx).await
        }
    }

    /// Since when a pod is being ended, and whether that is news.
    fn begin_to_end(&self, pod: &Pod) -> (Instant, bool) {
        let mut ending = self.ending.lock().expect("nothing panics under this lock");
        match ending.get(&Key::of(pod)) {
            Some((uid, since)) if *uid == pod.metadata.uid => (*since, false),
            _ => {
                let now = Instant::now();
                ending.insert(Key::of(pod), (pod.metadata.uid.clone(), now));
                (now, true)
            }
        }
    }

    async fn address(&self, pod: &Pod, network: &Network, ctx: &Context) -> Result<String> {
        if pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default() {
            return Ok(network.address.to_string());
        }
        // All pods have to be known before an address is given out.
        let seed = || async {
            self.addresses.seed(&ctx.objects::<Pod>().all_namespaces().list().await?);
            Ok::<_, flyball::Error>(())
        };
        self.seeded.get_or_try_init(seed).await?;
        Ok(self.addresses.of(pod, network).to_string())
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<Key, PodRun>> {
        self.runs.lock().expect("nothing panics under this lock")
    }
}

async fn remove(pod: &Pod, ctx: &Context) -> Result {
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

/// Whether events about a pod can be written: a namespace that is about to go takes none.
fn takes_events(pod: &Pod, ctx: &Context) -> Result<bool> {
    let namespace = ctx.cache().get::<PartialObjectMeta<Namespace>>(pod.namespace().unwrap_or_default())?;
    Ok(namespace.is_some_and(|namespace| !owner::is_terminating(&namespace.metadata)))
}

fn publish(notice: Notice, ctx: &Context) {
    let published = match notice.is_warning {
        true => Event::warning(notice.reason, notice.note),
        false => Event::normal(notice.reason, notice.note),
    };
    ctx.event(event(published, &notice.container));
}

fn event(event: Event, container: &str) -> Event {
    event.by(NAME).field(format!("spec.containers{{{container}}}"))
}

fn until(next: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(next.duration_since(now)).unwrap_or_default()
}
