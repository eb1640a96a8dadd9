//! A controller that was added to an operator while it ran.

use crate::declare::controller::ControllerSpec;
use crate::engine::shared::Shared;
use crate::{Error, Result};
use std::sync::Arc;
use tokio_util::sync::DropGuard;

/// A controller that a reconcile started. It stops when this is dropped; what only it watched is watched no more.
#[must_use = "a controller stops when it is dropped"]
#[derive(Debug)]
pub struct Controlled {
    _stop: DropGuard,
}

impl Controlled {
    pub(crate) fn start(operator: &Arc<Shared>, controller: ControllerSpec) -> Result<Controlled> {
        let mut mistakes = controller.mistakes();
        if operator.cache.is_confined() {
            mistakes.extend(controller.scope_error());
        }
        if !mistakes.is_empty() {
            return Err(Error::permanent(mistakes.join("; ")));
        }
        let stop = operator.stop.child_token();
        operator.control(controller, stop.clone());
        Ok(Controlled { _stop: stop.drop_guard() })
    }
}
