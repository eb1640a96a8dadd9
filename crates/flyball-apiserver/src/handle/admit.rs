//! Whether a namespace, or a definition, takes new objects: mostly what the plugin NamespaceLifecycle decides.

use crate::call::Call;
use crate::object;
use crate::status::{Cause, Result, Status};
use bytes::Bytes;
use serde_json::Value;

/// Namespaces that nobody may delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Refuses a new object in a namespace that is not there, or is about to go.
pub(super) async fn create(call: &Call, name: &str) -> Result<()> {
    if call.kind.custom.as_ref().is_some_and(|custom| custom.is_terminating()) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&call.kind.resource, name, why));
    }
    let Some(namespace) = call.namespace() else {
        return Ok(());
    };
    let key = Bytes::from(format!("core/namespaces/{namespace}"));
    let entry = match call.store().get(&key).await {
        Ok(entry) => entry,
        Err(error) => return call.store_failed(error),
    };
    let Some(entry) = entry else {
        let served = call.server.registry().served();
        let kind = served.find("", "v1", "namespaces").expect("namespaces are built in");
        return Err(Status::not_found(&kind.resource, namespace));
    };
    if object::peek(&entry.value).metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden(&call.kind.resource, name, why);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    Err(status)
}

/// Refuses a pod that names a service account which is not there. The account `default` need not be: nothing here would
/// make it.
// plugin/pkg/admission/serviceaccount/admission.go
pub(super) async fn pod(call: &Call, pod: &Value) -> Result<()> {
    let (Some(namespace), Some(account)) = (call.namespace(), pod["spec"]["serviceAccountName"].as_str()) else {
        return Ok(());
    };
    if !call.kind.is("", "pods") || matches!(account, "" | "default") {
        return Ok(());
    }
    match call.store().get(format!("core/serviceaccounts/{namespace}/{account}")).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let why =
                format!("error looking up service account {namespace}/{account}: serviceaccount {account:?} not found");
            Err(Status::forbidden(&call.kind.resource, object::name(pod), why))
        }
        Err(error) => call.store_failed(error),
    }
}

/// Refuses the deletion of a namespace that no cluster can do without.
pub(super) fn delete(call: &Call, name: &str) -> Result<()> {
    if call.kind.is("", "namespaces") && IMMORTAL.contains(&name) {
        return Err(Status::forbidden(&call.kind.resource, name, "this namespace may not be deleted"));
    }
    Ok(())
}
