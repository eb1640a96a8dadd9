//! The ServiceAccount of an operator, its roles, and what binds them.

use super::{Manifests, rules::Needed};
use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn objects(manifests: &Manifests<'_>) -> Vec<Value> {
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
    }
    objects.extend(bound(manifests, &format!("{name}-leader-election"), Some(own), leases(name)));
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

/// One Lease, in the operator's own namespace. A create by name alone cannot be allowed: its request has no name.
fn leases(name: &str) -> Value {
    json!([
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"] },
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [name],
            "verbs": ["get", "list", "watch", "update"],
        },
    ])
}

/// For whoever scrapes the metrics; bound to nobody.
fn metrics_reader(manifests: &Manifests<'_>) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": manifests.metadata(&format!("{}-metrics-reader", manifests.name()), None),
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    })
}
