//! Whether a store can read and write right now.

use std::{error::Error, fmt};

/// What a store can do right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Reads and commits work.
    Healthy,
    /// Reads work, commits fail.
    ReadOnly {
        /// Why commits fail.
        reason: String,
    },
    /// Neither reads nor commits work.
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl Health {
    /// Whether reads and commits work.
    pub fn is_healthy(&self) -> bool {
        *self == Health::Healthy
    }

    /// Returns why the store is not healthy; `None` where it is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Health::Healthy => None,
            Health::ReadOnly { reason } | Health::Unavailable { reason } => Some(reason),
        }
    }

    pub(crate) fn read_only(error: &dyn Error) -> Health {
        Health::ReadOnly { reason: chain(error) }
    }

    pub(crate) fn unavailable(error: &dyn Error) -> Health {
        Health::Unavailable { reason: chain(error) }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Health::Healthy => f.write_str("healthy"),
            Health::ReadOnly { reason } => write!(f, "read-only: {reason}"),
            Health::Unavailable { reason } => write!(f, "unavailable: {reason}"),
        }
    }
}

/// An error and its sources in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
