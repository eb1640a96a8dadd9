//! ServiceAccount: a new pod names a service account that exists. Nothing creates the account `default` or mounts its
//! token here, so a pod may name `default` without there being one.
// plugin/pkg/admission/serviceaccount/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::endpoints::Subresource;
use crate::kinds::core::POD;
use crate::status::Result;
use futures::future::{BoxFuture, FutureExt};

/// The plugin.
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_new = attributes.operation == Operation::Create && attributes.subresource == Subresource::Whole;
        is_new && attributes.request.kind.is(&POD)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let account = attributes.object["spec"]["serviceAccountName"].as_str().unwrap_or_default();
            let Some(namespace) = attributes.namespace.filter(|_| !matches!(account, "" | "default")) else {
                return Ok(());
            };
            match attributes.get(format!("core/serviceaccounts/{namespace}/{account}")).await? {
                Some(_) => Ok(()),
                None => {
                    let looked_up = format!("error looking up service account {namespace}/{account}");
                    Err(attributes.forbidden(format!("{looked_up}: serviceaccount {account:?} not found")))
                }
            }
        }
        .boxed()
    }
}
