//! Which node should have a pod of a DaemonSet, and the pods themselves.

use super::{ByNode, event, spec};
use crate::{history::HASH_LABEL, pod, refusal, scheduler::node_affinity, template};
use flyball::{Context, Event, Result};
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use std::{sync::Arc, time::Duration};

/// How long a failed pod is kept before it is replaced.
const FAILED_BACKOFF: Duration = Duration::from_secs(1);
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// Whether a node should get a pod, and whether one that is there may stay.
// daemon_controller.go, NodeShouldRunDaemonPod
pub(super) fn should_run(set: &DaemonSet, node: &Node) -> (bool, bool) {
    let mut spec = spec(set).template.spec.unwrap_or_default();
    if spec.node_name.as_ref().is_some_and(|name| !name.is_empty() && *name != node.name_any()) {
        return (false, false);
    }
    tolerate(&mut spec);
    if !node_affinity::is_selected(&spec, node) {
        return (false, false);
    }
    let tolerations = spec.tolerations.unwrap_or_default();
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let untolerated: Vec<_> = taints
        .filter(|taint| taint.effect != "PreferNoSchedule" && !node_affinity::is_tolerated(&tolerations, taint))
        .collect();
    (untolerated.is_empty(), untolerated.iter().all(|taint| taint.effect != "NoExecute"))
}

/// The node that a pod is on or meant for.
pub(super) fn target(pod: &Pod) -> Option<String> {
    if let Some(node) = pod::node(pod) {
        return Some(node.to_owned());
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let fields = terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let named = fields.into_iter().find(|field| field.key == "metadata.name" && field.operator == "In")?;
    named.values.as_ref()?.first().cloned()
}

/// Makes the pods that nodes lack, and deletes those that are too many or have ended.
// daemon_controller.go, podsShouldBeOnNode
pub(super) async fn manage(
    set: &DaemonSet,
    nodes: &[Arc<Node>],
    pods: ByNode,
    hash: &str,
    ctx: &Context,
) -> Result<Option<Duration>> {
    let surges = super::rollout::limits(set, nodes.len()).surge > 0;
    let mut wait = None;
    for node in nodes {
        let (runs, stays) = should_run(set, node);
        let name = node.name_any();
        let here = pods.get(&name).cloned().unwrap_or_default();
        if here.is_empty() {
            if runs {
                create(set, &name, hash, ctx).await?;
            }
            continue;
        }
        if !stays {
            for pod in here.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                delete(pod, ctx).await?;
            }
            continue;
        }
        let living = here.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let (ended, running): (Vec<_>, Vec<_>) = living.partition(|pod| pod::has_ended(pod));
        for pod in ended {
            if let Some(left) = replace_ended(pod, &name, ctx).await? {
                wait = Some(wait.map_or(left, |wait: Duration| wait.min(left)));
            }
        }
        let is_new = |pod: &&Arc<Pod>| pod.labels().get(HASH_LABEL).is_some_and(|label| label == hash);
        let (new, old): (Vec<_>, Vec<_>) = running.into_iter().partition(|pod| is_new(pod));
        let surplus = match surges {
            true => new.iter().skip(1).chain(old.iter().skip(1)).copied().collect::<Vec<_>>(),
            false => old.iter().chain(&new).skip(1).copied().collect(),
        };
        for pod in surplus {
            delete(pod, ctx).await?;
        }
        if let (true, Some(new), Some(old)) = (surges, new.first(), old.first()) {
            let is_available = pod::is_available(new, super::min_ready_seconds(set), ctx.now().0);
            if is_available || !pod::is_ready(old) {
                delete(old, ctx).await?;
            }
        }
    }
    for pod in pods
        .iter()
        .filter(|(name, _)| nodes.iter().all(|node| node.name_any() != **name))
        .flat_map(|(_, pods)| pods)
    {
        // A pod that waits for a node that is gone; those on the node are the garbage collector's.
        if pod::node(pod).is_none() && pod.metadata.deletion_timestamp.is_none() {
            delete(pod, ctx).await?;
        }
    }
    Ok(wait)
}

/// Deletes a pod that has ended, after a while; says how much of that is left.
async fn replace_ended(pod: &Pod, node: &str, ctx: &Context) -> Result<Option<Duration>> {
    let key = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    if pod::phase(pod) == "Succeeded" {
        let note = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
        ctx.event(event(Event::normal("SucceededDaemonPod", note)));
        delete(pod, ctx).await?;
        return Ok(None);
    }
    let created = pod.metadata.creation_timestamp.as_ref().map_or(ctx.now().0, |time| time.0);
    let age = Duration::try_from(ctx.now().0.duration_since(created)).unwrap_or_default();
    let left = FAILED_BACKOFF.saturating_sub(age);
    if !left.is_zero() {
        return Ok(Some(left));
    }
    let note = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
    ctx.event(event(Event::warning("FailedDaemonPod", note)));
    delete(pod, ctx).await?;
    Ok(None)
}

/// Makes the pod of a node.
pub(super) async fn create(set: &DaemonSet, node: &str, hash: &str, ctx: &Context) -> Result<()> {
    let mut pod = template::pod(&spec(set).template, set);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(HASH_LABEL.into(), hash.into());
    if let Some(generation) = set.annotations().get(GENERATION) {
        labels.insert("pod-template-generation".into(), generation.clone());
    }
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    aim(spec, node);
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &set.namespace().unwrap_or_default());
    match pods.create(&PostParams::default(), &pod).await {
        Ok(pod) => ctx.event(event(Event::normal("SuccessfulCreate", format!("Created pod: {}", pod.name_any())))),
        Err(error) if refusal::is_namespace_terminating(&error) => {}
        Err(error) => {
            let note = format!("Error creating: {}", refusal::message(&error));
            ctx.event(event(Event::warning("FailedCreate", note)));
            return Err(error.into());
        }
    }
    Ok(())
}

/// Deletes a pod, and says so.
pub(super) async fn delete(pod: &Pod, ctx: &Context) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(ctx.client(), &pod.namespace().unwrap_or_default());
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match pods.delete(&pod.name_any(), &params).await {
        Err(error) if refusal::is_not_found(&error) || refusal::is_conflict(&error) => {}
        deleted => {
            deleted?;
            ctx.event(event(Event::normal("SuccessfulDelete", format!("Deleted pod: {}", pod.name_any()))));
        }
    }
    Ok(())
}

/// Lets the scheduler place a pod on one node only.
// pkg/controller/daemon/util/daemonset_util.go, ReplaceDaemonSetPodNodeNameNodeAffinity
fn aim(spec: &mut PodSpec, node: &str) {
    let field = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.into()]),
    };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    match &mut affinity.required_during_scheduling_ignored_during_execution {
        Some(required) => {
            required
                .node_selector_terms
                .iter_mut()
                .for_each(|term| term.match_fields = Some(vec![field.clone()]));
        }
        none => {
            let term = NodeSelectorTerm {
                match_fields: Some(vec![field]),
                ..NodeSelectorTerm::default()
            };
            *none = Some(NodeSelector { node_selector_terms: vec![term] });
        }
    }
}

/// Lets a pod stay on a node with problems.
// pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations
fn tolerate(spec: &mut PodSpec) {
    let mut taints = vec![
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    if spec.host_network.unwrap_or_default() {
        taints.push(("network-unavailable", "NoSchedule"));
    }
    let tolerations = spec.tolerations.get_or_insert_default();
    for (name, effect) in taints {
        let toleration = Toleration {
            key: Some(format!("node.kubernetes.io/{name}")),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}
