//! Validation of a cron schedule, with the messages of upstream's parser.
// robfig/cron v3, parser.go

use crate::go_duration;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// The allowed values of one field of a schedule.
struct Bounds {
    least: u64,
    most: u64,
    /// Names of the values, from `least` on.
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds { least: 1, most: 12, names: &MONTHS },
    Bounds { least: 0, most: 6, names: &DAYS },
];

/// Parses a schedule, or returns why it is invalid.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let schedule = match schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        Some(zoned) => zoned.split_once(' ').map_or("", |(_, rest)| rest).trim(),
        None => schedule,
    };
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(field, bounds)| {
        let mut parts = field.split(',').filter(|part| !part.is_empty());
        parts.try_for_each(|part| range(part, bounds))
    })
}

fn descriptor(text: &str) -> Result<(), String> {
    match text.strip_prefix("@every ") {
        _ if DESCRIPTORS.contains(&text) => Ok(()),
        Some(interval) if go_duration::is_duration(interval) => Ok(()),
        Some(interval) => Err(format!("failed to parse duration {text}: time: invalid duration {interval:?}")),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let (span, steps) = text.split_once('/').map_or((text, None), |(span, steps)| (span, Some(steps)));
    let (low, high) = span.split_once('-').map_or((span, None), |(low, high)| (low, Some(high)));
    let (first, mut last) = match (low, high) {
        ("*" | "?", _) => (bounds.least, bounds.most),
        (_, None) => {
            let first = number(low, bounds)?;
            (first, first)
        }
        (_, Some(high)) if high.contains('-') => return Err(format!("too many hyphens: {text}")),
        (_, Some(high)) => (number(low, bounds)?, number(high, bounds)?),
    };
    let step = match steps {
        None => 1,
        Some(steps) if steps.contains('/') => return Err(format!("too many slashes: {text}")),
        Some(steps) => integer(steps)?,
    };
    if steps.is_some() && high.is_none() {
        last = bounds.most;
    }
    let Bounds { least, most, .. } = bounds;
    match () {
        () if first < *least => Err(format!("beginning of range ({first}) below minimum ({least}): {text}")),
        () if last > *most => Err(format!("end of range ({last}) above maximum ({most}): {text}")),
        () if first > last => Err(format!("beginning of range ({first}) beyond end of range ({last}): {text}")),
        () if step == 0 => Err(format!("step of range should be a positive number: {text}")),
        () => Ok(()),
    }
}

fn number(text: &str, bounds: &Bounds) -> Result<u64, String> {
    match bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(position) => Ok(bounds.least + position as u64),
        None => integer(text),
    }
}

fn integer(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number.unsigned_abs()),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}
