//! A cron schedule: when the next time is, in a time zone.
// robfig/cron v3, parser.go and spec.go

use jiff::{SignedDuration, Timestamp, ToSpan, Zoned, tz::TimeZone};

/// When something is to happen, again and again.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    times: Times,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
enum Times {
    Fields(Fields),
    Every(SignedDuration),
}

/// The allowed values of each field, a bit each.
#[derive(Clone, Debug)]
struct Fields {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    /// Whether a day has to match both the day of the month and that of the week, since one of them is a star.
    both_days: bool,
}

/// The time that is due, and how many were since the last, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Timestamp,
    pub(super) missed: i64,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// How many years ahead a time is looked for, as robfig/cron does.
const MAX_YEARS: i16 = 5;

impl Schedule {
    /// Reads a schedule; `TZ=` in it goes before the zone.
    pub(super) fn parse(text: &str, zone: Option<TimeZone>) -> Result<Schedule, String> {
        let prefixed = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (text, zone) = match prefixed {
            Some(rest) => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let zone = TimeZone::get(name).map_err(|error| format!("provided bad location {name}: {error}"))?;
                (rest.trim(), zone)
            }
            None => (text.trim(), zone.unwrap_or(TimeZone::UTC)),
        };
        let times = match text {
            "@yearly" | "@annually" => fields("0 0 1 1 *")?,
            "@monthly" => fields("0 0 1 * *")?,
            "@weekly" => fields("0 0 * * 0")?,
            "@daily" | "@midnight" => fields("0 0 * * *")?,
            "@hourly" => fields("0 * * * *")?,
            _ => match text.strip_prefix("@every ") {
                Some(interval) => {
                    let every: SignedDuration =
                        interval.parse().map_err(|_| format!("failed to parse duration {text}"))?;
                    Times::Every(SignedDuration::from_secs(every.as_secs().max(1)))
                }
                None => fields(text)?,
            },
        };
        Ok(Schedule { times, zone })
    }

    /// The first time after another.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let second = Timestamp::from_second(after.as_second()).ok()?;
        match &self.times {
            Times::Every(every) => second.checked_add(*every).ok(),
            Times::Fields(fields) => fields.next(second, &self.zone),
        }
    }

    /// The last time after `earliest` that is not after `now`.
    // pkg/controller/cronjob/utils.go, mostRecentScheduleTime
    pub(super) fn latest(&self, earliest: Timestamp, now: Timestamp) -> Option<Due> {
        let first = self.next(earliest).filter(|first| *first <= now)?;
        let second = match self.next(first) {
            Some(second) if second <= now => second,
            _ => return Some(Due { at: first, missed: 0 }),
        };
        let interval = second.duration_since(first).as_secs().max(1);
        let missed = now.duration_since(first).as_secs() / interval + 1;
        let near = first
            .checked_add(SignedDuration::from_secs((missed - 2).max(0) * interval))
            .unwrap_or(first);
        let mut at = None;
        let mut next = self.next(near);
        while let Some(found) = next.filter(|found| *found <= now) {
            at = Some(found);
            next = self.next(found);
        }
        at.map(|at| Due { at, missed })
    }
}

impl Fields {
    /// Each field that does not match is advanced, and those below it begin anew.
    // spec.go, SpecSchedule.Next
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let has = |bits: u64, value: i8| bits & (1 << value) != 0;
        let mut t = after.checked_add(SignedDuration::from_secs(1)).ok()?.to_zoned(zone.clone());
        let last_year = t.year() + MAX_YEARS;
        while t.year() <= last_year {
            if !has(self.month, t.month()) {
                t = midnight(&t.first_of_month().ok()?.checked_add(1.month()).ok()?)?;
            } else if !self.is_day(&t) {
                t = midnight(&t.checked_add(1.day()).ok()?)?;
            } else if !has(self.hour, t.hour()) {
                t = on_the_hour(&t)?.checked_add(1.hour()).ok()?;
            } else if !has(self.minute, t.minute()) || t.second() != 0 {
                t = on_the_minute(&t)?.checked_add(1.minute()).ok()?;
            } else {
                return Some(t.timestamp());
            }
        }
        None
    }

    fn is_day(&self, t: &Zoned) -> bool {
        let day = self.day & (1 << t.day()) != 0;
        let weekday = self.weekday & (1 << t.weekday().to_sunday_zero_offset()) != 0;
        if self.both_days { day && weekday } else { day || weekday }
    }
}

/// The beginning of a day, which is not midnight where a clock is advanced then.
fn midnight(t: &Zoned) -> Option<Zoned> {
    t.start_of_day().ok()
}

/// The same hour, of the same of two where a clock was set back.
fn on_the_hour(t: &Zoned) -> Option<Zoned> {
    let past = SignedDuration::from_secs(i64::from(t.minute()) * 60 + i64::from(t.second()));
    t.checked_sub(past).ok()
}

fn on_the_minute(t: &Zoned) -> Option<Zoned> {
    t.checked_sub(SignedDuration::from_secs(i64::from(t.second()))).ok()
}

fn fields(text: &str) -> Result<Times, String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = parts[..] else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    };
    let is_star = |part: &str| part.split(',').any(|part| matches!(part.split('/').next(), Some("*" | "?")));
    Ok(Times::Fields(Fields {
        minute: field(minute, 0, 59, &[])?,
        hour: field(hour, 0, 23, &[])?,
        day: field(day, 1, 31, &[])?,
        month: field(month, 1, 12, &MONTHS)?,
        weekday: field(weekday, 0, 6, &DAYS)?,
        both_days: is_star(day) || is_star(weekday),
    }))
}

fn field(text: &str, least: u32, most: u32, names: &[&str]) -> Result<u64, String> {
    let invalid = |part: &str| format!("failed to parse {part:?} in a field of {least} to {most}");
    let number = |part: &str| -> Option<u32> {
        let named = names.iter().position(|name| part.eq_ignore_ascii_case(name));
        named.map(|index| index as u32 + least).or_else(|| part.parse().ok())
    };
    let mut bits = 0;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step: u32 = step
            .map_or(Some(1), |step| step.parse().ok())
            .filter(|step| *step > 0)
            .ok_or_else(|| invalid(part))?;
        let (first, last) = match range {
            "*" | "?" => (least, most),
            range => match range.split_once('-') {
                Some((first, last)) => {
                    (number(first).ok_or_else(|| invalid(part))?, number(last).ok_or_else(|| invalid(part))?)
                }
                None => {
                    let first = number(range).ok_or_else(|| invalid(part))?;
                    (first, if part.contains('/') { most } else { first })
                }
            },
        };
        if first < least || last > most || first > last {
            return Err(invalid(part));
        }
        (first..=last).step_by(step as usize).for_each(|value| bits |= 1_u64 << value);
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn next(schedule: &str, after: &str) -> String {
        Schedule::parse(schedule, None)
            .unwrap()
            .next(at(after))
            .map(|next| next.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn the_next_time_matches_every_field() {
        let after = "2026-01-01T00:00:00Z";
        for (schedule, expected) in [
            ("*/15 * * * *", "2026-01-01T00:15:00Z"),
            ("30 4 * * *", "2026-01-01T04:30:00Z"),
            ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
            ("0 0 * * mon-fri", "2026-01-02T00:00:00Z"),
            ("0 0 13 * 5", "2026-01-02T00:00:00Z"),
            ("0 0 1 jan,JUL *", "2026-07-01T00:00:00Z"),
            ("5/20 12 * * ?", "2026-01-01T12:05:00Z"),
            ("@monthly", "2026-02-01T00:00:00Z"),
            ("@every 90s", "2026-01-01T00:01:30Z"),
            ("0 0 31 2 *", ""),
        ] {
            assert_eq!(next(schedule, after), expected, "{schedule}");
        }
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let zone = TimeZone::get("America/New_York").unwrap();
        let schedule = Schedule::parse("30 2 * * *", Some(zone)).unwrap();
        let next = |after: &str| schedule.next(at(after)).unwrap().to_string();
        assert_eq!(next("2026-01-01T00:00:00Z"), "2026-01-01T07:30:00Z");
        assert_eq!(next("2026-03-07T12:00:00Z"), "2026-03-09T06:30:00Z", "02:30 does not exist on 8 March");
        let prefixed = Schedule::parse("TZ=Asia/Tokyo 0 0 * * *", None).unwrap();
        assert_eq!(prefixed.next(at("2026-01-01T00:00:00Z")).unwrap().to_string(), "2026-01-01T15:00:00Z");
    }

    #[test]
    fn the_latest_of_many_missed_times_is_found() {
        let hourly = Schedule::parse("0 * * * *", None).unwrap();
        let latest = |from: &str, to: &str| hourly.latest(at(from), at(to)).map(|due| (due.at.to_string(), due.missed));
        assert_eq!(latest("2026-01-01T00:00:00Z", "2026-01-01T00:59:59Z"), None);
        assert_eq!(
            latest("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
            Some(("2026-01-01T01:00:00Z".into(), 0))
        );
        assert_eq!(
            latest("2026-01-01T00:00:00Z", "2026-01-11T05:30:00Z"),
            Some(("2026-01-11T05:00:00Z".into(), 245))
        );
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "* * * *",
            "60 * * * *",
            "a * * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "@often",
            "TZ=Nowhere * * * * *",
        ] {
            assert!(Schedule::parse(text, None).is_err(), "{text}");
        }
    }
}
