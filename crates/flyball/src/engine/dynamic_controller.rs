//! A controller that was added to an operator while it ran.

use crate::declare::controller::ControllerSpec;
use crate::engine::runtime::Runtime;
use crate::{Error, Result};
use std::sync::Arc;
use tokio_util::sync::DropGuard;

/// A controller that a reconcile started. It stops when this is dropped, and so do the watches that only it needed.
#[must_use = "a controller stops when it is dropped"]
#[derive(Debug)]
pub struct DynamicController {
    _stop: DropGuard,
}

impl DynamicController {
    pub(crate) fn start(operator: &Arc<Runtime>, controller: ControllerSpec) -> Result<DynamicController> {
        let mut mistakes = controller.mistakes();
        if operator.cache.is_confined() {
            mistakes.extend(controller.scope_error());
        }
        if !mistakes.is_empty() {
            return Err(Error::permanent(mistakes.join("; ")));
        }
        let stop = operator.stop.child_token();
        operator.control(controller, stop.clone());
        Ok(DynamicController { _stop: stop.drop_guard() })
    }
}
