//! Durations as people write them: `500ms`, `1m30s`.

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let invalid = |_| D::Error::custom(format!("invalid duration {text:?}: expected a form such as 500ms or 1m30s"));
    let duration: SignedDuration = text.parse().map_err(|_| invalid(()))?;
    Duration::try_from(duration).map_err(|_| invalid(()))
}

/// The same where none may be given.
pub(super) mod optional {
    use super::*;

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}
