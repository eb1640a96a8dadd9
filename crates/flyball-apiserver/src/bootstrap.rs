//! What every cluster has from the start.

mod rbac;

use crate::authn::user::{SYSTEM_MASTERS, User};
use crate::endpoints;
use crate::registry::Kind;
use crate::registry::service_allocator::FIRST_ADDRESS;
use crate::request::context::{RequestContext, ResourceRequest};
use crate::request::info::{RequestInfo, ResourceInfo};
use crate::server::ApiServer;
use crate::status::{Result, Status};
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::{Value, json};
use std::sync::Arc;

/// Adds to the store what every cluster has and this one lacks.
pub(crate) async fn seed(server: &ApiServer) -> Result<()> {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(server, "/api/v1/namespaces", &namespace).await?;
    }
    for (name, value) in [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
        create(server, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let spec = json!({"clusterIP": FIRST_ADDRESS.to_string(), "type": "ClusterIP",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]});
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels}, "spec": spec});
    create(server, "/api/v1/namespaces/default/services", &service).await?;
    rbac::seed(server).await
}

async fn create(server: &ApiServer, path: &str, object: &Value) -> Result<()> {
    let info = RequestInfo::read(&Method::POST, &path.parse().expect("a path of ours"));
    let target = info.resource.clone().ok_or_else(Status::no_such_path)?;
    let kind = kind(server, &target)?;
    let mut context = RequestContext::new(server.clone(), info, HeaderValue::from_static("bootstrap"));
    context.user = User::new("system:apiserver", [SYSTEM_MASTERS]);
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static("kube-apiserver"));
    let mut request = ResourceRequest::new(kind, target, context, headers);
    request.body = object.to_string().into();
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

fn kind(server: &ApiServer, target: &ResourceInfo) -> Result<Arc<Kind>> {
    let served = server.registry().served();
    served
        .find(&target.group, &target.version, &target.resource)
        .cloned()
        .ok_or_else(Status::no_such_path)
}
