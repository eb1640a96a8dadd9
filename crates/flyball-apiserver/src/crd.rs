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
use crate::registry::{CrdVersion, Kind};
use crate::request::context::ResourceRequest;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_store::{Expect, Op};
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

/// The operation that makes a commit depend on the definition whose schemas the object was made with; none for built-in
/// kinds.
pub(crate) fn require_definition(kind: &Kind) -> Option<Op> {
    let definition = kind.custom.as_ref()?.definition.as_ref()?;
    let revision = Expect::Revision(definition.revision.load(Ordering::Relaxed));
    Some(Op::check(definition.key.clone(), revision))
}

/// After a conflict: if the definition of the kind has changed, waits until the controller has seen that. An error says
/// that the kind is not served as it was, so that the request must be handled by another kind.
pub(crate) async fn follow_definition(server: &ApiServer, kind: &Kind, conflict: &Bytes) -> Result<()> {
    let is_its_definition =
        |custom: &&CrdVersion| custom.definition.as_ref().is_some_and(|definition| definition.key == conflict);
    let Some(custom) = kind.custom.as_ref().filter(is_its_definition) else {
        return Ok(());
    };
    if let Some(reconciled) = server.crds().map(|controller| controller.reconciled(custom.name.clone())) {
        // If the controller is late, the commit is tried again and meets the same conflict.
        let _late = tokio::time::timeout(MAX_WAIT, reconciled).await;
    }
    match custom.is_withdrawn() {
        true => Err(Status::definition_changed()),
        false => Ok(()),
    }
}

fn definition_kind(server: &ApiServer) -> Arc<Kind> {
    let served = server.registry().served();
    served.find(GROUP, "v1", PLURAL).cloned().expect("definitions are built in")
}
