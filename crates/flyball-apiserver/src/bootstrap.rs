//! What every cluster has from the start.

mod flow_control;
mod prepared;
mod rbac;

use crate::endpoints;
use crate::internal;
use crate::registry::service_allocator::FIRST_ADDRESS;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use http::Method;
use serde_json::{Value, json};

/// Adds to the store what every cluster has and this one lacks.
pub(crate) async fn seed(server: &ApiServer) -> Result<()> {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(server, "/api/v1/namespaces", &namespace).await?;
    }
    for (name, value, description) in [
        ("system-node-critical", 2_000_001_000, "For pods without which their node does not work."),
        (
            "system-cluster-critical",
            2_000_000_000,
            "For pods without which the cluster does not work, on whichever node.",
        ),
    ] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": description});
        create(server, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let spec = json!({"clusterIP": FIRST_ADDRESS.to_string(), "type": "ClusterIP",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]});
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels}, "spec": spec});
    create(server, "/api/v1/namespaces/default/services", &service).await?;
    rbac::seed(server).await?;
    flow_control::seed(server).await
}

async fn create(server: &ApiServer, path: &str, object: &Value) -> Result<()> {
    let request = internal::request(server, Method::POST, path, object)?;
    let key = request
        .kind
        .key(request.namespace(), object["metadata"]["name"].as_str().unwrap_or_default());
    if server.store().get(key).await.map_err(Status::store_failed)?.is_some() {
        return Ok(());
    }
    match endpoints::handle(&request).await {
        Err(status) if status.code != 409 => Err(status),
        _ => Ok(()),
    }
}
