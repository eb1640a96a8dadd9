//! Why a group could compare nothing: its control plane is not to be had here, or did not start.

use crate::reference::Error;
use crate::report::{Finding, sentence};

/// Why nothing could be compared.
pub(super) enum Unready {
    Skipped(String),
    Failed(String),
}

impl Unready {
    /// What the report says of it.
    pub(super) fn findings(self) -> Vec<Finding> {
        match self {
            Self::Skipped(reason) => vec![Finding::skipped("start", reason)],
            Self::Failed(reason) => vec![Finding::check("start", Err(reason))],
        }
    }
}

impl From<Error> for Unready {
    fn from(error: Error) -> Self {
        match error {
            Error::NoGo => Self::Skipped(error.to_string()),
            error => Self::Failed(sentence(&error)),
        }
    }
}
