//! How controllers find objects without listing a kind: children by owner or label, pods by node, owners by what they select.
//!
//! An *anchor* is a value that a selector and every object that it selects have in common: one label, or only the namespace.

use crate::{claim::Member, owner, pod, scheduler::volumes::claim_names};
use flyball::{Cache, Controller, Result};
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{Resource, api::PartialObjectMeta};
use serde::de::DeserializeOwned;
use std::{collections::BTreeMap, sync::Arc};

/// The index of children: by controller, and those without one by anchor. Pods are also found by label and by node.
pub(crate) const CHILDREN: &str = "children";
/// The index of objects with a selector, by its anchor.
pub(crate) const SELECTORS: &str = "selectors";

/// Declares the index of a kind that is owned. One controller of an operator does it for all.
pub(crate) fn index_children<K, C>(controller: Controller<K>) -> Controller<K>
where
    C: Member + 'static,
{
    controller.index(CHILDREN, |child: &PartialObjectMeta<C>| child_values(&child.metadata))
}

/// Declares the index of pods. One controller of an operator does it for all.
pub(crate) fn index_pods<K>(controller: Controller<K>) -> Controller<K> {
    controller.index(CHILDREN, |pod: &Pod| {
        let mut values = child_values(&pod.metadata);
        values.extend(anchors(&pod.metadata).into_iter().map(|anchor| labelled(&anchor)));
        values.extend(pod::node(pod).map(on_node));
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        values.extend(claim_names(pod).iter().map(|claim| using_claim(namespace, claim)));
        values
    })
}

/// Declares the index of a kind by its selector.
pub(crate) fn index_selectors<K, S>(
    controller: Controller<K>,
    selector: fn(&S) -> Option<LabelSelector>,
) -> Controller<K>
where
    S: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned + 'static,
{
    let value = move |object: &S| Some(anchor(object.meta().namespace.as_deref(), &selector(object)?));
    controller.index(SELECTORS, move |object: &S| value(object).into_iter().collect())
}

/// Finds the children that an object of this uid controls.
pub(crate) fn controlled_by(uid: &str) -> String {
    format!("owner/{uid}")
}

/// Finds the children without a controller that share an anchor.
pub(crate) fn orphaned(anchor: &str) -> String {
    format!("orphan/{anchor}")
}

/// Finds the pods that share an anchor.
pub(crate) fn labelled(anchor: &str) -> String {
    format!("label/{anchor}")
}

/// Finds the pods of a node.
pub(crate) fn on_node(node: &str) -> String {
    format!("node/{node}")
}

/// Finds the pods that use a volume claim.
pub(crate) fn using_claim(namespace: &str, claim: &str) -> String {
    format!("claim/{namespace}/{claim}")
}

fn child_values(meta: &ObjectMeta) -> Vec<String> {
    match owner::controller(meta) {
        Some(owner) => vec![controlled_by(&owner.uid)],
        None => anchors(meta).iter().map(|anchor| orphaned(anchor)).collect(),
    }
}

/// The anchor of a selector.
pub(crate) fn anchor(namespace: Option<&str>, selector: &LabelSelector) -> String {
    anchor_of(namespace, selector.match_labels.as_ref().unwrap_or(&BTreeMap::new()))
}

/// The anchor of labels that are all wanted.
pub(crate) fn anchor_of(namespace: Option<&str>, labels: &BTreeMap<String, String>) -> String {
    let namespace = namespace.unwrap_or_default();
    match labels.first_key_value() {
        Some((name, value)) => format!("{namespace}/{name}={value}"),
        None => format!("{namespace}/"),
    }
}

/// Every anchor that a selector of this object may have.
pub(crate) fn anchors(meta: &ObjectMeta) -> Vec<String> {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let labels = meta.labels.iter().flatten();
    let mut anchors: Vec<_> = labels.map(|(name, value)| format!("{namespace}/{name}={value}")).collect();
    anchors.push(format!("{namespace}/"));
    anchors
}

/// The objects of kind `S` whose selector may select an object.
pub(crate) fn selecting<S>(object: &ObjectMeta, cache: &Cache) -> Result<Vec<Arc<S>>>
where
    S: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned,
{
    let mut found = Vec::new();
    for anchor in anchors(object) {
        found.extend(cache.by_index::<S>(SELECTORS, &anchor)?);
    }
    Ok(found)
}
