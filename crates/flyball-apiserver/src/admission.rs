//! Whether a namespace, or a definition, takes new objects: mostly what the plugin NamespaceLifecycle decides.

use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::status::{Cause, Result, Status};
use bytes::Bytes;
use serde_json::Value;

/// Namespaces that nobody may delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Refuses a new object in a namespace that is not there, or is about to go.
pub(crate) async fn create(request: &ResourceRequest, name: &str) -> Result<()> {
    if request.kind.custom.as_ref().is_some_and(|custom| custom.is_terminating()) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&request.kind.resource, name, why));
    }
    let Some(namespace) = request.namespace() else {
        return Ok(());
    };
    let key = Bytes::from(format!("core/namespaces/{namespace}"));
    let entry = match request.store().get(&key).await {
        Ok(entry) => entry,
        Err(error) => return request.store_failed(error),
    };
    let Some(entry) = entry else {
        let served = request.server.registry().served();
        let kind = served.find("", "v1", "namespaces").expect("namespaces are built in");
        return Err(Status::not_found(&kind.resource, namespace));
    };
    if object::peek(&entry.value).metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden(&request.kind.resource, name, why);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    Err(status)
}

/// Refuses a pod that names a service account or a priority class which is not there, and gives it its priority.
/// The account `default` need not be there: nothing here would make it.
// plugin/pkg/admission: serviceaccount, priority
pub(crate) async fn pod(request: &ResourceRequest, pod: &mut Value) -> Result<()> {
    let Some(namespace) = request.namespace().filter(|_| request.kind.is("", "pods")) else {
        return Ok(());
    };
    let name = |pod: &Value, field: &str| pod["spec"][field].as_str().unwrap_or_default().to_owned();
    let refused = |pod: &Value, why: String| Err(Status::forbidden(&request.kind.resource, object::name(pod), why));
    let account = name(pod, "serviceAccountName");
    if !matches!(account.as_str(), "" | "default")
        && read(request, format!("core/serviceaccounts/{namespace}/{account}")).await?.is_none()
    {
        let looked_up = format!("error looking up service account {namespace}/{account}");
        return refused(pod, format!("{looked_up}: serviceaccount {account:?} not found"));
    }
    let class = name(pod, "priorityClassName");
    if class.is_empty() {
        return Ok(());
    }
    match read(request, format!("scheduling.k8s.io/priorityclasses/{class}")).await? {
        None => refused(pod, format!("no PriorityClass with name {class} was found")),
        Some(class) => {
            pod["spec"]["priority"] = class["value"].clone();
            pod["spec"]["preemptionPolicy"] = class["preemptionPolicy"].clone();
            Ok(())
        }
    }
}

async fn read(request: &ResourceRequest, key: String) -> Result<Option<Value>> {
    match request.store().get(key).await {
        Ok(entry) => Ok(entry.map(|entry| object::decode(&entry.value))),
        Err(error) => request.store_failed(error),
    }
}

/// Refuses the deletion of a namespace that no cluster can do without.
pub(crate) fn delete(request: &ResourceRequest, name: &str) -> Result<()> {
    if request.kind.is("", "namespaces") && IMMORTAL.contains(&name) {
        return Err(Status::forbidden(&request.kind.resource, name, "this namespace may not be deleted"));
    }
    Ok(())
}
