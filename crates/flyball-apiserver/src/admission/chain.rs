//! The admission chain: every plugin, in the order in which they are asked.
// apiserver/pkg/admission/chain.go

use crate::admission::Attributes;
use crate::admission::namespace_lifecycle::NamespaceLifecycle;
use crate::admission::priority::Priority;
use crate::admission::service_account::ServiceAccount;
use crate::status::Result;
use futures::future::{BoxFuture, FutureExt, ready};

/// The plugins in upstream's order.
// pkg/kubeapiserver/options/plugins.go, AllOrderedPlugins
static PLUGINS: &[&dyn Plugin] = &[&NamespaceLifecycle, &ServiceAccount, &Priority];

/// An admission plugin. Both steps may wait for the store or for other servers; neither may change anything but the
/// object and what the commit depends on.
pub(crate) trait Plugin: Sync {
    /// Whether the plugin is asked about a write at all.
    fn handles(&self, attributes: &Attributes<'_>) -> bool;

    /// The mutating step: may change the object, or refuse it. Runs before validation.
    fn admit<'a>(&'a self, _attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        ready(Ok(())).boxed()
    }

    /// The validating step: may refuse the object. Runs after validation.
    fn validate<'a>(&'a self, _attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        ready(Ok(())).boxed()
    }
}

/// Runs the mutating steps.
pub(crate) async fn admit(attributes: &mut Attributes<'_>) -> Result<()> {
    for plugin in PLUGINS {
        if plugin.handles(attributes) {
            plugin.admit(attributes).await?;
        }
    }
    Ok(())
}

/// Runs the validating steps.
pub(crate) async fn validate(attributes: &mut Attributes<'_>) -> Result<()> {
    for plugin in PLUGINS {
        if plugin.handles(attributes) {
            plugin.validate(attributes).await?;
        }
    }
    Ok(())
}
