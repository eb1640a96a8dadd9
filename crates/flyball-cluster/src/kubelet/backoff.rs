//! How long to wait before something is tried again, and times in general.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// The first and the longest wait before a container is started again, or an image pulled again.
pub(super) const MIN_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The wait after another: twice as long, up to the longest.
pub(super) fn next_backoff(known: Option<Duration>) -> Duration {
    known.map_or(MIN_BACKOFF, |known| (known * 2).min(MAX_BACKOFF))
}

/// `10s`, `2m40s`, `5m0s`: as Go prints durations of whole seconds.
pub(super) fn go_seconds(duration: Duration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// A time so much later.
pub(super) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// Keeps the earlier of two times.
pub(super) fn earlier(known: &mut Option<Timestamp>, other: Option<Timestamp>) {
    *known = match (*known, other) {
        (Some(known), Some(other)) => Some(known.min(other)),
        (known, other) => known.or(other),
    };
}
