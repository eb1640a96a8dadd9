//! Sizes workloads by what their pods use: HorizontalPodAutoscalers.

mod limit;
mod usage;

use crate::{
    kinds::Kinds,
    lookup::{self, CHILDREN},
    node::Nodes,
    refusal,
};
use flyball::{Action, Context, Controller, Event, Key, Reconciler, Result};
use flyball_host::clock::Clock;
use flyball_schema::selector::{LabelOperator, LabelSelector};
use k8s_openapi::{
    api::{
        autoscaling::v1::Scale,
        autoscaling::v2::{
            HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
            HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus,
        },
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use limit::History;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Who an autoscaler's events are from.
const NAME: &str = "horizontal-pod-autoscaler";
/// kube-controller-manager's `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: Duration = Duration::from_secs(15);

/// The controller of HorizontalPodAutoscalers. Usage is what simulated pods are told to use.
pub(crate) fn controller(kinds: &Kinds, nodes: &Nodes, clock: Clock) -> Controller<HorizontalPodAutoscaler> {
    let autoscalers = Autoscalers {
        kinds: kinds.clone(),
        nodes: nodes.clone(),
        clock,
        histories: Mutex::default(),
    };
    Controller::new(autoscalers).named("horizontalpodautoscaler").reads::<Pod>()
}

struct Autoscalers {
    kinds: Kinds,
    nodes: Nodes,
    clock: Clock,
    histories: Mutex<HashMap<Key, History>>,
}

impl Reconciler<HorizontalPodAutoscaler> for Autoscalers {
    async fn reconcile(&self, autoscaler: Arc<HorizontalPodAutoscaler>, ctx: Context) -> Result {
        let mut round = Round {
            spec: autoscaler.spec.clone(),
            status: autoscaler.status.clone().unwrap_or_default(),
            key: Key::of(&*autoscaler),
            ctx: &ctx,
        };
        self.scale(&mut round).await?;
        round.status.observed_generation = autoscaler.metadata.generation;
        ctx.set_status(&round.status).await?;
        Ok(Action::requeue_after(SYNC_PERIOD))
    }

    fn gone(&self, key: &Key) {
        self.histories.lock().expect("nothing panics under this lock").remove(key);
    }
}

/// One look at an autoscaler.
struct Round<'a> {
    spec: HorizontalPodAutoscalerSpec,
    status: HorizontalPodAutoscalerStatus,
    key: Key,
    ctx: &'a Context,
}

/// What one metric proposes.
struct Proposal {
    replicas: i32,
    name: String,
    status: MetricStatus,
}

/// Why a metric proposes nothing: a reason and a message.
type Failure = (&'static str, String);

impl Autoscalers {
    // pkg/controller/podautoscaler/horizontal.go, reconcileAutoscaler
    async fn scale(&self, round: &mut Round<'_>) -> Result<()> {
        let (target, namespace) =
            (round.spec.scale_target_ref.clone(), round.key.namespace().unwrap_or_default().to_owned());
        let version = target.api_version.clone().unwrap_or_default();
        let api = self
            .kinds
            .named(&version, &target.kind)
            .map(|kind| -> Api<DynamicObject> { Api::namespaced_with(round.ctx.client(), &namespace, &kind.resource) });
        let found = match &api {
            Some(api) => api.get_scale(&target.name).await.map_err(|error| refusal::message(&error)),
            None => Err(format!("no matches for kind {:?} in version {version:?}", target.kind)),
        };
        let (Some(api), scale) = (
            api,
            match found {
                Ok(scale) => scale,
                Err(why) => {
                    round.ctx.event(Event::warning("FailedGetScale", why.clone()).by(NAME));
                    let note = format!("the HPA controller was unable to get the target's current scale: {why}");
                    round.set("AbleToScale", "False", "FailedGetScale", &note);
                    return Ok(());
                }
            },
        ) else {
            return Ok(());
        };
        round.set(
            "AbleToScale",
            "True",
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        );
        let current = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
        let least = round.spec.min_replicas.unwrap_or(1);
        let (desired, reason) = if current == 0 && least != 0 {
            let note = "scaling is disabled since the replica count of the target is zero";
            round.set("ScalingActive", "False", "ScalingDisabled", note);
            (0, String::new())
        } else if current > round.spec.max_replicas {
            (round.spec.max_replicas, "Current number of replicas above Spec.MaxReplicas".into())
        } else if current < least {
            (least, "Current number of replicas below Spec.MinReplicas".into())
        } else {
            match self.propose(round, &scale, current).await? {
                Some((proposed, reason)) => (self.limited(round, current, proposed, least), reason),
                None => {
                    round.status.current_replicas = Some(current);
                    return Ok(());
                }
            }
        };
        if desired != current {
            self.rescale(round, &api, (current, desired), &reason).await?;
        }
        round.status.current_replicas = Some(current);
        round.status.desired_replicas = desired;
        Ok(())
    }

    /// The largest size that a metric proposes, and why; none if no metric is known.
    async fn propose(&self, round: &mut Round<'_>, scale: &Scale, current: i32) -> Result<Option<(i32, String)>> {
        let text = scale.status.as_ref().and_then(|status| status.selector.clone()).unwrap_or_default();
        let selector = text.parse::<LabelSelector>().ok().filter(|selector| !selector.is_empty());
        let Some(selector) = selector else {
            round.ctx.event(Event::warning("SelectorRequired", "selector is required").by(NAME));
            round.set(
                "ScalingActive",
                "False",
                "InvalidSelector",
                "the HPA target's scale is missing a selector",
            );
            return Ok(None);
        };
        let pods = pods_of(&selector, round.key.namespace().unwrap_or_default(), round.ctx).await?;
        let (mut best, mut failure, mut statuses) = (None::<Proposal>, None::<Failure>, Vec::new());
        for metric in round.spec.metrics.clone().unwrap_or_default() {
            match self.metric(&metric, &pods, current, &round.spec) {
                Ok(proposal) => {
                    statuses.push(proposal.status.clone());
                    if best.as_ref().is_none_or(|best| proposal.replicas > best.replicas) {
                        best = Some(proposal);
                    }
                }
                Err((reason, why)) => {
                    round.ctx.event(Event::warning(reason, why.clone()).by(NAME));
                    failure.get_or_insert((reason, why));
                }
            }
        }
        round.status.current_metrics = (!statuses.is_empty()).then_some(statuses);
        let fails_down = failure.is_some() && best.as_ref().is_some_and(|best| best.replicas < current);
        let Some(best) = best.filter(|_| !fails_down) else {
            if let Some((reason, why)) = failure {
                let note = format!("the HPA was unable to compute the replica count: {why}");
                round.set("ScalingActive", "False", reason, &note);
                let note = format!("invalid metrics (1 invalid out of 1), first error is: {why}");
                round.ctx.event(Event::warning("FailedComputeMetricsReplicas", note).by(NAME));
            }
            return Ok(None);
        };
        let note = format!("the HPA was able to successfully calculate a replica count from {}", best.name);
        round.set("ScalingActive", "True", "ValidMetricFound", &note);
        let reason = match best.replicas.cmp(&current) {
            std::cmp::Ordering::Greater => format!("{} above target", best.name),
            _ => "All metrics below target".into(),
        };
        Ok(Some((best.replicas, reason)))
    }

    fn metric(
        &self,
        metric: &MetricSpec,
        pods: &[Arc<Pod>],
        current: i32,
        spec: &HorizontalPodAutoscalerSpec,
    ) -> Result<Proposal, Failure> {
        let meter = usage::Meter {
            behaviours: &self.nodes.behaviours,
            now: self.clock.now(),
            tolerance: limit::tolerances(spec),
        };
        match (&metric.resource, &metric.container_resource, &*metric.type_) {
            (Some(resource), _, _) => meter.resource(&resource.name, None, &resource.target, pods, current),
            (_, Some(resource), _) => {
                meter.resource(&resource.name, Some(&resource.container), &resource.target, pods, current)
            }
            (_, _, type_) => {
                let reason = match type_ {
                    "Pods" => "FailedGetPodsMetric",
                    "Object" => "FailedGetObjectMetric",
                    _ => "FailedGetExternalMetric",
                };
                Err((reason, format!("{type_} metrics are not supported: no API serves them")))
            }
        }
    }

    /// The proposed size within what stabilization, rate and bounds allow.
    fn limited(&self, round: &mut Round<'_>, current: i32, proposed: i32, least: i32) -> i32 {
        let now = self.clock.now();
        let limited = {
            let mut histories = self.histories.lock().expect("nothing panics under this lock");
            let history = histories.entry(round.key.clone()).or_default();
            history.limit(&round.spec, (current, proposed, least), now)
        };
        let (reason, note) = limited
            .stabilized
            .unwrap_or(("ReadyForNewScale", "recommended size matches current size"));
        round.set("AbleToScale", "True", reason, note);
        let (holds, (reason, note)) = match limited.limited {
            Some(why) => ("True", why),
            None => ("False", ("DesiredWithinRange", "the desired count is within the acceptable range")),
        };
        round.set("ScalingLimited", holds, reason, note);
        limited.replicas
    }

    async fn rescale(
        &self,
        round: &mut Round<'_>,
        api: &Api<DynamicObject>,
        (current, desired): (i32, i32),
        reason: &str,
    ) -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": desired } }));
        let name = round.spec.scale_target_ref.name.clone();
        if let Err(error) = api.patch_scale(&name, &PatchParams::default(), &patch).await {
            let why = refusal::message(&error);
            let note = format!("New size: {desired}; reason: {reason}; error: {why}");
            round.ctx.event(Event::warning("FailedRescale", note).by(NAME));
            let note = format!("the HPA controller was unable to update the target scale: {why}");
            round.set("AbleToScale", "False", "FailedUpdateScale", &note);
            return Ok(());
        }
        let note = format!("the HPA controller was able to update the target scale to {desired}");
        round.set("AbleToScale", "True", "SucceededRescale", &note);
        let note = format!("New size: {desired}; reason: {reason}");
        round.ctx.event(Event::normal("SuccessfulRescale", note).by(NAME));
        round.status.last_scale_time = Some(round.ctx.now());
        let mut histories = self.histories.lock().expect("nothing panics under this lock");
        histories.entry(round.key.clone()).or_default().scaled(current, desired, self.clock.now());
        Ok(())
    }
}

impl Round<'_> {
    fn set(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let conditions = self.status.conditions.get_or_insert_default();
        let known = conditions.iter().find(|known| known.type_ == type_ && known.status == status);
        let since = known.and_then(|known| known.last_transition_time.clone());
        let condition = HorizontalPodAutoscalerCondition {
            type_: type_.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_transition_time: since.or_else(|| Some(Time(self.ctx.now().0))),
        };
        match conditions.iter_mut().find(|known| known.type_ == type_) {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
}

/// The pods that a scale's selector selects.
async fn pods_of(selector: &LabelSelector, namespace: &str, ctx: &Context) -> Result<Vec<Arc<Pod>>> {
    let exact = selector.requirements.iter().filter_map(|it| match (&it.operator, &it.values[..]) {
        (LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::In, [value]) => {
            Some((it.key.clone(), value.clone()))
        }
        _ => None,
    });
    let anchor = lookup::anchor_of(Some(namespace), &exact.collect());
    let mut pods = ctx.by_index::<Pod>(CHILDREN, &lookup::labelled(&anchor)).await?;
    let matches = |pod: &Pod| {
        let value = |key: &str| pod.labels().get(key).map(String::as_str);
        selector.requirements.iter().all(|it| it.matches(value(&it.key)))
    };
    pods.retain(|pod| matches(pod));
    Ok(pods)
}
