//! The ServiceAccount of an operator, its roles, and what binds them.

use crate::Election;
use crate::program::manifests::Manifests;
use crate::program::manifests::rules::{Needed, events, reconciles_cluster_scoped};
use crate::program::webhook::secret;
use crate::webhook::registration;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) fn objects(manifests: &Manifests<'_>) -> Vec<Value> {
    let (name, own) = (manifests.name(), manifests.namespace.as_str());
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": manifests.metadata(name, Some(own)),
    });
    let mut objects = vec![account];
    let Needed { namespaced, cluster } = Needed::of(manifests.operator);
    if manifests.watched().is_empty() {
        objects.extend(bound(manifests, name, None, namespaced.and(cluster).into_value()));
    } else {
        objects.extend(bound(manifests, name, None, cluster.into_value()));
        let rules = namespaced.into_value();
        for namespace in manifests.watched() {
            objects.extend(bound(manifests, name, Some(namespace), rules.clone()));
        }
        // The events of cluster-scoped objects are in `default`.
        if reconciles_cluster_scoped(manifests.operator)
            && !manifests.watched().iter().any(|watched| watched == "default")
        {
            let rules = events(manifests.operator).into_value();
            objects.extend(bound(manifests, &format!("{name}-events"), Some("default"), rules));
        }
    }
    for (namespace, names) in elections(manifests) {
        objects.extend(bound(manifests, &format!("{name}-leader-election"), Some(&namespace), leases(&names)));
    }
    if registration::has_webhooks(manifests.operator) {
        let name = format!("{name}-webhook-ca");
        objects.extend(bound(manifests, &name, Some(own), authority(&secret::name(manifests.name()))));
    }
    objects.push(metrics_reader(manifests));
    objects
}

/// A role with these rules, in one namespace or in the cluster, and its binding to the operator.
fn bound(manifests: &Manifests<'_>, name: &str, namespace: Option<&str>, rules: Value) -> [Value; 2] {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let metadata = manifests.metadata(name, namespace);
    let role = format!("{prefix}Role");
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": format!("{role}Binding"),
        "metadata": metadata,
        "roleRef": { "apiGroup": GROUP, "kind": role, "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": manifests.name(), "namespace": manifests.namespace }],
    });
    let role = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": role, "metadata": metadata, "rules": rules });
    [role, binding]
}

/// The Leases that the operator and its controllers stand for, by namespace.
fn elections(manifests: &Manifests<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let operator = manifests.operator;
    let configured = Election::new(manifests.name());
    let own = operator.own_election().unwrap_or(&configured);
    let controllers = operator.controllers().iter().filter_map(|controller| controller.election.as_ref());
    let mut elections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for election in std::iter::once(own).chain(controllers) {
        let namespace = election.namespace.as_ref().unwrap_or(&manifests.namespace);
        elections.entry(namespace.clone()).or_default().insert(election.lease.clone());
    }
    elections
}

/// These Leases only. A create cannot be allowed by name: its request has none.
fn leases(names: &BTreeSet<String>) -> Value {
    json!([
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"] },
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": names,
            "verbs": ["get", "list", "watch", "update"],
        },
    ])
}

/// The Secret that replicas share the authority of their webhooks by.
fn authority(secret: &str) -> Value {
    json!([
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
        { "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get", "update"] },
    ])
}

/// For the metrics scraper; not bound to any subject.
fn metrics_reader(manifests: &Manifests<'_>) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": manifests.metadata(&format!("{}-metrics-reader", manifests.name()), None),
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    })
}
