//! Says how many pods of a PodDisruptionBudget may be evicted now.

use crate::{
    claim,
    kinds::Kinds,
    lookup::{self, CHILDREN, anchor},
    owner, pod, refusal,
};
use flyball::{Action, Cache, Context, Controller, Event, Key, Result};
use jiff::SignedDuration;
use k8s_openapi::{
    api::{
        apps::v1::ReplicaSet,
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, OwnerReference, Time},
        util::intstr::IntOrString,
    },
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PartialObjectMeta, PostParams},
};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
    time::Duration,
};

/// Who the events of a budget are from.
const NAME: &str = "controllermanager";
/// How long an eviction that was allowed counts although the pod is not being deleted yet.
const DISRUPTION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);

/// The controller of PodDisruptionBudgets.
pub(crate) fn controller(kinds: &Kinds) -> Controller<PodDisruptionBudget> {
    let kinds = kinds.clone();
    let controller = Controller::new(move |budget: Arc<PodDisruptionBudget>, ctx: Context| {
        let kinds = kinds.clone();
        async move { reconcile(&budget, &kinds, &ctx).await }
    })
    .named("disruption")
    .reads::<Pod>()
    .reads::<ReplicaSet>()
    .watches(budgets_of);
    lookup::index_selectors(controller, |budget: &PodDisruptionBudget| budget.spec.as_ref()?.selector.clone())
}

fn budgets_of(pod: Arc<PartialObjectMeta<Pod>>, cache: Cache) -> Result<Vec<Key>> {
    let budgets = lookup::selecting::<PodDisruptionBudget>(&pod.metadata, &cache)?;
    Ok(budgets.iter().map(|budget| Key::of(&**budget)).collect())
}

// pkg/controller/disruption/disruption.go, trySync
async fn reconcile(budget: &PodDisruptionBudget, kinds: &Kinds, ctx: &Context) -> Result {
    let pods = pods_of(budget, ctx).await?;
    if pods.is_empty() {
        ctx.event(Event::normal("NoPods", "No matching pods found").by(NAME));
    }
    let (expected, desired) = match expected(budget, &pods, kinds, ctx).await {
        Ok(expected) => expected,
        Err(why) => {
            let note = format!("Failed to calculate the number of expected pods: {why}");
            ctx.event(Event::warning("CalculateExpectedPodCountFailed", note).by(NAME));
            let mut status = budget.status.clone().unwrap_or_default();
            status.disruptions_allowed = Some(0);
            set_condition(&mut status, budget, "False", "SyncFailed", &why, ctx);
            return write(budget, status, ctx).await;
        }
    };
    let now = ctx.now().0;
    let known = budget
        .status
        .as_ref()
        .and_then(|status| status.disrupted_pods.clone())
        .unwrap_or_default();
    let is_pending = |name: &String, at: &Time| {
        let pod = pods.iter().find(|pod| pod.name_any() == *name);
        let until = at.0.saturating_add(DISRUPTION_TIMEOUT).unwrap_or(at.0);
        pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none()) && until > now
    };
    let disrupted: BTreeMap<_, _> = known.into_iter().filter(|(name, at)| is_pending(name, at)).collect();
    let is_healthy = |pod: &&Arc<Pod>| {
        let leaving = pod.metadata.deletion_timestamp.is_some() || disrupted.contains_key(&pod.name_any());
        !leaving && pod::is_ready(pod)
    };
    let healthy = pods.iter().filter(is_healthy).count() as i32;
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let recheck = disrupted.values().filter_map(|at| at.0.checked_add(DISRUPTION_TIMEOUT).ok()).min();
    let mut status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: budget.metadata.generation,
        conditions: budget.status.as_ref().and_then(|status| status.conditions.clone()),
    };
    match allowed {
        0 => set_condition(&mut status, budget, "False", "InsufficientPods", "", ctx),
        _ => set_condition(&mut status, budget, "True", "SufficientPods", "", ctx),
    }
    let done = write(budget, status, ctx).await?;
    let wait = recheck.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    Ok(wait.map_or(done, Action::requeue_after))
}

/// The pods that a budget selects; an empty selector selects all of the namespace.
async fn pods_of(budget: &PodDisruptionBudget, ctx: &Context) -> Result<Vec<Arc<Pod>>> {
    let Some(labels) = budget.spec.as_ref().and_then(|spec| spec.selector.clone()) else {
        return Ok(Vec::new());
    };
    let Ok(selector) = kube::core::Selector::try_from(labels.clone()) else {
        return Ok(Vec::new());
    };
    let value = lookup::labelled(&anchor(budget.metadata.namespace.as_deref(), &labels));
    let mut pods = ctx.by_index::<Pod>(CHILDREN, &value).await?;
    pods.retain(|pod| claim::selects(&selector, &pod.metadata));
    Ok(pods)
}

/// How many pods there should be, and how many of them healthy.
async fn expected(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    kinds: &Kinds,
    ctx: &Context,
) -> std::result::Result<(i32, i32), String> {
    let spec = budget.spec.clone().unwrap_or_default();
    match (spec.max_unavailable, spec.min_available) {
        (Some(limit), _) => {
            let expected = scale(pods, kinds, ctx).await?;
            Ok((expected, (expected - scaled(&limit, expected)).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Ok((pods.len() as i32, least)),
        (None, Some(percent)) => {
            let expected = scale(pods, kinds, ctx).await?;
            Ok((expected, scaled(&percent, expected)))
        }
        (None, None) => Ok((0, 0)),
    }
}

fn scaled(limit: &IntOrString, of: i32) -> i32 {
    match limit {
        IntOrString::Int(limit) => *limit,
        IntOrString::String(percent) => {
            let percent: i64 = percent.trim_end_matches('%').parse().unwrap_or_default();
            i32::try_from((i64::from(of) * percent + 99) / 100).unwrap_or(i32::MAX)
        }
    }
}

/// The size of all controllers of the pods together.
async fn scale(pods: &[Arc<Pod>], kinds: &Kinds, ctx: &Context) -> std::result::Result<i32, String> {
    let mut sizes: BTreeMap<String, i32> = BTreeMap::new();
    for pod in pods {
        let Some(mut owner) = owner::controller(&pod.metadata).cloned() else {
            continue;
        };
        let namespace = pod.namespace().unwrap_or_default();
        if owner.kind == "ReplicaSet" {
            let set = ctx.get::<ReplicaSet>(Key::namespaced(&*namespace, &*owner.name)).await;
            let set = set.map_err(|error| error.to_string())?;
            if let Some(deployment) = set.as_ref().and_then(|set| owner::controller(&set.metadata)) {
                owner = deployment.clone();
            }
        }
        if let Entry::Vacant(entry) = sizes.entry(owner.uid.clone()) {
            let size = size(&owner, &namespace, kinds, ctx).await;
            entry.insert(size.ok_or_else(|| format!("found no controllers for pod {:?}", pod.name_any()))?);
        }
    }
    Ok(sizes.values().sum())
}

/// `spec.replicas` of a controller's scale.
async fn size(owner: &OwnerReference, namespace: &str, kinds: &Kinds, ctx: &Context) -> Option<i32> {
    let kind = kinds.named(&owner.api_version, &owner.kind)?;
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client(), namespace, &kind.resource);
    let scale = api.get_scale(&owner.name).await.ok()?;
    Some(scale.spec.and_then(|spec| spec.replicas).unwrap_or_default())
}

fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    budget: &PodDisruptionBudget,
    holds: &str,
    reason: &str,
    message: &str,
    ctx: &Context,
) {
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter().find(|known| known.type_ == "DisruptionAllowed");
    let since = known
        .filter(|known| known.status == holds)
        .map(|known| known.last_transition_time.clone());
    let condition = Condition {
        type_: "DisruptionAllowed".into(),
        status: holds.into(),
        reason: reason.into(),
        message: message.into(),
        last_transition_time: since.unwrap_or_else(|| ctx.now()),
        observed_generation: budget.metadata.generation,
    };
    conditions.retain(|known| known.type_ != condition.type_);
    conditions.push(condition);
}

/// Writes a status over the version that was read: an eviction that was charged meanwhile must not be lost.
async fn write(budget: &PodDisruptionBudget, status: PodDisruptionBudgetStatus, ctx: &Context) -> Result {
    if budget.status.as_ref() == Some(&status) {
        return Ok(Action::await_change());
    }
    let next = PodDisruptionBudget { status: Some(status), ..budget.clone() };
    let api: Api<PodDisruptionBudget> = Api::namespaced(ctx.client(), &budget.namespace().unwrap_or_default());
    match api.replace_status(&budget.name_any(), &PostParams::default(), &next).await {
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
        written => drop(written?),
    }
    Ok(Action::await_change())
}
