//! Durations for people, with two or three figures: `42s`, `5m30s`, `2d3h`.

use jiff::Timestamp;
use serde_json::Value;

/// How long ago a time was, `<unknown>` if there is none.
pub(super) fn since(time: Option<&Value>, now: Timestamp) -> String {
    let Some(text) = time.and_then(Value::as_str) else {
        return "<unknown>".into();
    };
    match text.parse::<Timestamp>() {
        Ok(time) => human(now.duration_since(time).as_secs()),
        Err(_) => "<invalid>".into(),
    }
}

/// A duration in seconds, as apimachinery's `duration.HumanDuration` words it.
pub(super) fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_or_three_figures() {
        const DAY: i64 = 86400;
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (600, "10m"),
            (179 * 60 + 59, "179m"),
            (180 * 60, "3h"),
            (7 * 3600 + 60, "7h1m"),
            (8 * 3600, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * 3600, "2d3h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (740 * DAY, "2y10d"),
            (8 * 365 * DAY, "8y"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }
}
