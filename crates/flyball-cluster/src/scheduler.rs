//! Finds the best node for each pod that has none, makes room for it if it is important enough, or says why there is none.

mod fit;
pub(crate) mod node_affinity;
mod pod_affinity;
mod preempt;
mod state;
pub(crate) mod volumes;

use crate::{pod, refusal};
use fit::{Request, Unfit};
use flyball::{Action, Context, Controller, Event, Key, Operator, Reconciler, Result, Trigger};
use k8s_openapi::api::{
    core::v1::{
        Binding, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition, PodSpec, PodStatus,
    },
    policy::v1::PodDisruptionBudget,
    storage::v1::StorageClass,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use preempt::Preemption;
use serde_json::json;
use state::{Placed, State};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::OnceCell;
use volumes::Volumes;

/// The name by which pods ask for this scheduler; also who its events are from.
const NAME: &str = "default-scheduler";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The scheduler as an operator.
pub(crate) fn operator() -> Operator {
    let scheduler = Scheduler {
        state: Arc::default(),
        seeded: Arc::default(),
        retry: Trigger::new("a node may have room"),
    };
    let volumes = scheduler.clone();
    let claims = scheduler.clone();
    let pods = Controller::new(scheduler.clone())
        .named("scheduler")
        .concurrency(1)
        .triggered_by(&scheduler.retry)
        .reads::<Node>()
        .reads::<PersistentVolumeClaim>()
        .reads::<PersistentVolume>()
        .reads::<StorageClass>()
        .reads::<PodDisruptionBudget>()
        .watches(move |_: Arc<PersistentVolumeClaim>, _| claims.waiting())
        .watches(move |_: Arc<PersistentVolume>, _| volumes.waiting());
    let nodes = Controller::new(Nodes(scheduler)).named("scheduler-nodes");
    Operator::new("kube-scheduler").controller(pods).controller(nodes)
}

#[derive(Clone)]
struct Scheduler {
    state: Arc<Mutex<State>>,
    /// Whether the state has everything that was there at the start.
    seeded: Arc<OnceCell<()>>,
    retry: Trigger,
}

impl Reconciler<Pod> for Scheduler {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        self.seed(&ctx).await?;
        if self.lock().observe(&pod) {
            self.retry_waiting()?;
        }
        if !is_waiting(&pod) || self.is_bound(&pod) {
            return Ok(Action::await_change());
        }
        let volumes = match Volumes::of(&pod, &ctx).await? {
            Ok(volumes) => volumes,
            Err(why) => {
                self.lock().waiting.insert(Key::of(&*pod));
                let nodes = self.lock().live().count();
                return refuse(&pod, &format!("0/{nodes} nodes are available: {why}."), None, &ctx).await;
            }
        };
        if !volumes.delayed.is_empty() {
            return self.place_with_claims(&pod, volumes, &ctx).await;
        }
        let (request, chosen) = self.choose(&pod, volumes);
        match chosen {
            Ok(node) => self.bind(&pod, &node.name_any(), &ctx).await,
            Err(unfit) => self.make_room(&pod, &request, unfit, &ctx).await,
        }
    }

    async fn terminating(&self, pod: Arc<Pod>, ctx: Context) -> Result {
        self.seed(&ctx).await?;
        if self.lock().observe(&pod) {
            self.retry_waiting()?;
        }
        Ok(Action::await_change())
    }

    fn gone(&self, key: &Key) {
        if self.lock().remove(key) {
            self.retry_waiting().unwrap_or_default();
        }
    }
}

/// Keeps the scheduler's nodes.
struct Nodes(Scheduler);

impl Reconciler<Node> for Nodes {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context) -> Result {
        self.0.seed(&ctx).await?;
        self.0.lock().put_node(&node);
        self.0.retry_waiting()?;
        Ok(Action::await_change())
    }

    async fn terminating(&self, node: Arc<Node>, ctx: Context) -> Result {
        self.reconcile(node, ctx).await
    }

    fn gone(&self, key: &Key) {
        self.0.lock().remove_node(key.name());
    }
}

impl Scheduler {
    /// Lists nodes and pods once; from then on each change is reconciled.
    async fn seed(&self, ctx: &Context) -> Result<()> {
        let seed = || async {
            let nodes = ctx.objects::<Node>().list().await?;
            let pods = ctx.objects::<Pod>().all_namespaces().list().await?;
            let mut state = self.lock();
            nodes.iter().for_each(|node| state.put_node(node));
            for pod in &pods {
                state.observe(pod);
            }
            Ok::<_, flyball::Error>(())
        };
        self.seeded.get_or_try_init(seed).await?;
        Ok(())
    }

    fn choose(&self, pod: &Pod, volumes: Volumes) -> (Request, Result<Arc<Node>, Unfit>) {
        let state = self.lock();
        let request = Request::of(pod, volumes, &state);
        let chosen = request.choose(&state);
        (request, chosen)
    }

    fn is_bound(&self, pod: &Pod) -> bool {
        let state = self.lock();
        state.pods.get(&Key::of(pod)).is_some_and(|placed| placed.uid == pod.metadata.uid)
    }

    async fn bind(&self, pod: &Pod, node: &str, ctx: &Context) -> Result {
        self.lock().place(Key::of(pod), Placed::of(pod, node));
        if let Err(error) = bind(pod, node, ctx).await {
            self.lock().remove(&Key::of(pod));
            return Err(error);
        }
        Ok(Action::await_change())
    }

    /// Chooses the node for which claims are bound that wait for their first consumer; the pod follows when they are.
    async fn place_with_claims(&self, pod: &Pod, volumes: Volumes, ctx: &Context) -> Result {
        let claims = volumes.delayed.clone();
        let (request, chosen) = self.choose(pod, volumes);
        let node = match chosen {
            Ok(node) => node.name_any(),
            Err(unfit) => return self.make_room(pod, &request, unfit, ctx).await,
        };
        self.lock().waiting.insert(Key::of(pod));
        for claim in claims {
            if claim.annotations().get(SELECTED_NODE) != Some(&node) {
                let api: Api<PersistentVolumeClaim> =
                    Api::namespaced(ctx.client(), &claim.namespace().unwrap_or_default());
                let patch = Patch::Merge(json!({ "metadata": { "annotations": { SELECTED_NODE: node } } }));
                api.patch(&claim.name_any(), &PatchParams::default(), &patch).await?;
            }
        }
        Ok(Action::await_change())
    }

    /// Deletes less important pods if that makes room, and says why the pod waits.
    async fn make_room(&self, pod: &Pod, request: &Request, unfit: Unfit, ctx: &Context) -> Result {
        self.lock().waiting.insert(Key::of(pod));
        if unfit.nodes == 0 {
            return refuse(pod, &unfit.message, None, ctx).await;
        }
        let budgets = match request.spec.priority {
            Some(1..) => ctx.objects::<PodDisruptionBudget>().all_namespaces().list().await?,
            _ => Vec::new(),
        };
        let preemption = preempt::preempt(request, &unfit, &self.lock(), &budgets);
        match preemption {
            Err(why) => {
                let nominated = self.lock().nominated.get(&request.key).map(|(node, ..)| node.clone());
                refuse(pod, &format!("{} preemption: {why}", unfit.message), nominated.as_deref(), ctx).await
            }
            Ok(Preemption { node, victims }) => {
                let nomination = (node.clone(), request.spec.priority.unwrap_or_default(), request.amounts.clone());
                self.lock().nominated.insert(request.key.clone(), nomination);
                for (key, victim) in &victims {
                    evict(pod, key, victim, &node, ctx).await?;
                }
                refuse(pod, &unfit.message, Some(&node), ctx).await
            }
        }
    }

    /// Pods that fit nowhere so far.
    fn waiting(&self) -> Vec<Key> {
        self.lock().waiting.iter().cloned().collect()
    }

    /// Looks again at all pods that wait.
    fn retry_waiting(&self) -> Result<()> {
        self.waiting().into_iter().try_for_each(|key| self.retry.reconcile(key))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }
}

async fn bind(pod: &Pod, node: &str, ctx: &Context) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    let mut binding = Binding {
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.into()),
            ..ObjectReference::default()
        },
        ..Binding::default()
    };
    (binding.metadata.name, binding.metadata.uid) = (pod.metadata.name.clone(), pod.metadata.uid.clone());
    let (name, params) = (pod.name_any(), PostParams::default());
    let bound: kube::Result<kube::core::Status> = pods.create_subresource("binding", &name, &params, &binding).await;
    match bound {
        // Gone, or bound already and the cache does not know yet.
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => return Ok(()),
        bound => bound?,
    };
    let note = format!("Successfully assigned {} to {node}", Key::of(pod));
    ctx.event(Event::normal("Scheduled", note).action("Binding").by(NAME));
    Ok(())
}

/// Deletes a pod in favour of another, and says so.
// pkg/scheduler/framework/preemption/executor.go
async fn evict(preemptor: &Pod, key: &Key, victim: &Placed, node: &str, ctx: &Context) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &victim.namespace);
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{NAME}: preempting to accommodate a higher priority pod"),
        "lastTransitionTime": ctx.now(),
    });
    let patch = Patch::Strategic(json!({ "metadata": { "uid": victim.uid }, "status": { "conditions": [condition] } }));
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: victim.uid.clone(), resource_version: None }),
        ..DeleteParams::default()
    };
    for result in [
        pods.patch_status(key.name(), &PatchParams::default(), &patch).await.map(drop),
        pods.delete(key.name(), &params).await.map(drop),
    ] {
        match result {
            Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => return Ok(()),
            result => result?,
        }
    }
    let mut regarding = Pod::default().object_ref(&());
    regarding.namespace = Some(victim.namespace.clone());
    (regarding.name, regarding.uid) = (Some(key.name().into()), victim.uid.clone());
    let uid = preemptor.uid().unwrap_or_default();
    let note = format!("Preempted by pod {uid} on node {node}");
    ctx.event_about(&regarding, Event::normal("Preempted", note).action("Preempting").by(NAME))
}

/// Says why a pod has to wait.
async fn refuse(pod: &Pod, why: &str, nominated: Option<&str>, ctx: &Context) -> Result {
    let status = pod.status.as_ref();
    let known = pod::condition(pod, "PodScheduled").filter(|known| known.status == "False");
    let same = known.is_some_and(|known| known.message.as_deref() == Some(why));
    let nominated_before = status.and_then(|status| status.nominated_node_name.as_deref());
    if same && nominated_before == nominated {
        return Ok(Action::await_change());
    }
    let since = known.and_then(|known| known.last_transition_time.clone());
    ctx.set_status(PodStatus {
        nominated_node_name: nominated.map(str::to_owned),
        conditions: Some(vec![PodCondition {
            type_: "PodScheduled".into(),
            status: "False".into(),
            reason: Some("Unschedulable".into()),
            message: Some(why.into()),
            last_transition_time: since.or_else(|| Some(ctx.now())),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        }]),
        ..PodStatus::default()
    })
    .await?;
    ctx.event(Event::warning("FailedScheduling", why).action("Scheduling").by(NAME));
    Ok(Action::await_change())
}

fn is_waiting(pod: &Pod) -> bool {
    let asks_for_us = |spec: &PodSpec| {
        let gated = spec.scheduling_gates.iter().flatten().next().is_some();
        spec.scheduler_name.as_deref() == Some(NAME) && !gated
    };
    pod::node(pod).is_none() && !pod::has_ended(pod) && pod.spec.as_ref().is_some_and(asks_for_us)
}
