//! The questions that an author adds to the probes.

use std::{fmt, sync::Arc};

/// A question that is asked whenever a probe is.
#[derive(Clone)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) ask: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The questions that an author adds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    pub(crate) live: Vec<Check>,
    pub(crate) ready: Vec<Check>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check {}", self.name)
    }
}
