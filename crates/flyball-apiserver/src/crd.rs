//! CustomResourceDefinitions: a controller follows them in the store, accepts their names, serves their kinds, and
//! removes their objects before a deleted definition goes. Requests only wait for it, so a dropped request loses nothing.

mod conditions;
mod controller;
mod definition;
mod finalize;
mod kinds;
mod names;
mod reconcile;
mod schemas;

use crate::kinds::api_extensions::CUSTOM_RESOURCE_DEFINITION;
use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::server::ApiServer;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use conditions::terminate;
pub(crate) use controller::{Controller, start};
pub(crate) use definition::Definition;
pub use schemas::CrdSchemas;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How long the response to a write waits for the controller. Clients must not rely on it: a definition is served
/// when its `Established` condition is true, and gone when it is not found.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Waits until the controller has handled the write of a definition, or of an object of a definition that is being
/// deleted. Other requests return at once.
pub(crate) async fn wait_until_reconciled(request: &ResourceRequest, name: &str) {
    let terminating = request.kind.custom.as_ref().filter(|custom| custom.is_terminating());
    let name = match terminating {
        Some(custom) => &custom.name,
        None if request.kind.is(&CUSTOM_RESOURCE_DEFINITION) => name,
        None => return,
    };
    let reconciled = request.server.crds().map(|controller| controller.reconciled(name.to_owned()));
    if let Some(reconciled) = reconciled {
        // The write is stored: a controller that is late or fails only delays when it is served.
        let _late = tokio::time::timeout(MAX_WAIT, reconciled).await;
    }
}

fn definition_kind(server: &ApiServer) -> Arc<Kind> {
    let served = server.registry().served();
    served.find(GROUP, "v1", PLURAL).cloned().expect("definitions are built in")
}
