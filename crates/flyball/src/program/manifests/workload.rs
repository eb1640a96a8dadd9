//! The objects that run an operator: a Deployment under restricted pod security, and what belongs beside it.

use crate::Config;
use crate::program::config::{Health, Metrics, Webhook};
use crate::program::manifests::Manifests;
use crate::webhook::{endpoint::SERVICE_PORT, registration};
use serde_json::{Value, json};

/// Longer than reconciles under way may take to end.
const GRACE_SECONDS: u32 = 45;

pub(crate) fn objects(manifests: &Manifests<'_>, image: &str) -> Vec<Value> {
    let Config { metrics, health, webhook, .. } = Config::default();
    let mut objects = vec![
        deployment(manifests, image, &metrics, &health, &webhook),
        service(manifests, &metrics),
        network_policy(manifests, &metrics, &health, &webhook),
        disruption_budget(manifests),
    ];
    if registration::has_webhooks(manifests.operator) {
        objects.push(webhook_service(manifests));
    }
    if manifests.monitored {
        objects.push(service_monitor(manifests, &metrics));
    }
    objects
}

fn namespaced(manifests: &Manifests<'_>, api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let metadata = manifests.metadata(name, Some(&manifests.namespace));
    json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec })
}

fn deployment(manifests: &Manifests<'_>, image: &str, metrics: &Metrics, health: &Health, webhook: &Webhook) -> Value {
    let labels = manifests.labels();
    let spread = json!({
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": labels },
    });
    let pod = json!({
        "serviceAccountName": manifests.name(),
        // A Service called `flyball` would otherwise set variables that are the operator's.
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "topologySpreadConstraints": [spread],
        "containers": [container(manifests, image, metrics, health, webhook)],
    });
    let spec = json!({
        "replicas": manifests.replicas,
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": pod },
    });
    namespaced(manifests, "apps/v1", "Deployment", manifests.name(), spec)
}

fn container(manifests: &Manifests<'_>, image: &str, metrics: &Metrics, health: &Health, webhook: &Webhook) -> Value {
    let mut ports = vec![
        container_port("metrics", metrics.port),
        container_port("health", health.port),
    ];
    if registration::has_webhooks(manifests.operator) {
        ports.push(container_port("webhook", webhook.port));
    }
    ports.extend(manifests.operator.served().iter().map(|(name, port)| container_port(name, *port)));
    let mut container = json!({
        "name": "operator",
        "image": image,
        "args": ["run"],
        "ports": ports,
        "livenessProbe": { "httpGet": { "path": health.liveness_path, "port": "health" }, "periodSeconds": 20 },
        "readinessProbe": { "httpGet": { "path": health.readiness_path, "port": "health" }, "periodSeconds": 10 },
        "resources": {
            "requests": { "cpu": "100m", "memory": "128Mi" },
            "limits": { "cpu": "500m", "memory": "512Mi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
    });
    if !manifests.watched().is_empty() {
        container["env"] = json!([{ "name": "FLYBALL_NAMESPACES", "value": manifests.watched().join(",") }]);
    }
    container
}

fn container_port(name: &str, port: u16) -> Value {
    json!({ "name": name, "containerPort": port, "protocol": "TCP" })
}

fn service(manifests: &Manifests<'_>, metrics: &Metrics) -> Value {
    let port = |name: &str, port: u16| json!({ "name": name, "port": port, "targetPort": name, "protocol": "TCP" });
    let mut ports = vec![port("metrics", metrics.port)];
    ports.extend(manifests.operator.served().iter().map(|(name, number)| port(name, *number)));
    namespaced(
        manifests,
        "v1",
        "Service",
        manifests.name(),
        json!({ "selector": manifests.labels(), "ports": ports }),
    )
}

/// The address by which the API server reaches the webhooks.
fn webhook_service(manifests: &Manifests<'_>) -> Value {
    let port = json!({ "name": "webhook", "port": SERVICE_PORT, "targetPort": "webhook", "protocol": "TCP" });
    let spec = json!({ "selector": manifests.labels(), "ports": [port] });
    namespaced(manifests, "v1", "Service", &format!("{}-webhook", manifests.name()), spec)
}

/// Admits scrapes, probes, reviews, and requests to what the operator serves; nothing else.
fn network_policy(manifests: &Manifests<'_>, metrics: &Metrics, health: &Health, webhook: &Webhook) -> Value {
    let served = manifests.operator.served().iter().map(|(_, port)| *port);
    let webhook = registration::has_webhooks(manifests.operator).then_some(webhook.port);
    let ports: Vec<_> = [metrics.port, health.port].into_iter().chain(webhook).chain(served).collect();
    let ports: Vec<_> = ports.iter().map(|port| json!({ "port": port, "protocol": "TCP" })).collect();
    let spec = json!({
        "podSelector": { "matchLabels": manifests.labels() },
        "policyTypes": ["Ingress"],
        "ingress": [{ "ports": ports }],
    });
    namespaced(manifests, "networking.k8s.io/v1", "NetworkPolicy", manifests.name(), spec)
}

/// One at a time; so that a single replica does not keep a node from being drained.
fn disruption_budget(manifests: &Manifests<'_>) -> Value {
    let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": manifests.labels() } });
    namespaced(manifests, "policy/v1", "PodDisruptionBudget", manifests.name(), spec)
}

fn service_monitor(manifests: &Manifests<'_>, metrics: &Metrics) -> Value {
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let endpoint = json!({
        "port": "metrics",
        "path": metrics.path,
        "scheme": "https",
        "bearerTokenFile": token,
        // Each replica signs its own certificate, in memory. With `metrics.certFile`, name its authority here instead.
        "tlsConfig": { "insecureSkipVerify": true },
    });
    let spec = json!({ "selector": { "matchLabels": manifests.labels() }, "endpoints": [endpoint] });
    namespaced(manifests, "monitoring.coreos.com/v1", "ServiceMonitor", manifests.name(), spec)
}
