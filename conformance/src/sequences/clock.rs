//! The wall clock, which this machine's servers read too.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
