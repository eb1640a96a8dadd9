//! NamespaceLifecycle: nothing is created in a namespace that is absent or being deleted, and some namespaces are
//! never deleted.
// apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::kinds::core::NAMESPACE;
use crate::registry::object;
use crate::status::{Cause, Result, Status};
use futures::future::{BoxFuture, FutureExt};

/// Namespaces that cannot be deleted.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The plugin.
pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        match attributes.operation {
            // A review in a namespace does not tell whether the namespace is there.
            Operation::Create => {
                attributes.namespace.is_some()
                    && &*attributes.request.kind.resource.plural != "localsubjectaccessreviews"
            }
            Operation::Update => false,
            Operation::Delete => attributes.request.kind.is(&NAMESPACE),
        }
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            match (attributes.operation, attributes.namespace) {
                (Operation::Create, Some(namespace)) => check_namespace(attributes, namespace).await,
                (Operation::Delete, _) if PROTECTED_NAMESPACES.contains(&attributes.name()) => {
                    Err(attributes.forbidden("this namespace may not be deleted"))
                }
                _ => Ok(()),
            }
        }
        .boxed()
    }
}

/// Refuses a new object in a namespace that is absent or terminating. The commit depends on the namespace as it was read,
/// so that it cannot be deleted in between.
async fn check_namespace(attributes: &mut Attributes<'_>, namespace: &str) -> Result<()> {
    let Some(entry) = attributes.get(format!("core/namespaces/{namespace}")).await? else {
        let served = attributes.request.server.registry().served();
        let kind = served.find("", "v1", "namespaces").expect("namespaces are built in");
        return Err(Status::not_found(&kind.resource, namespace));
    };
    if object::peek(&entry.value).metadata.deletion_timestamp.is_none() {
        attributes.require(&entry);
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = attributes.forbidden(why);
    status.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    });
    Err(status)
}
