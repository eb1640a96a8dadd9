//! Work that a controller repeats for each of its objects, at moments that are spread over the interval.

use crate::cache::object::Object;
use crate::declare::reconciler::{Work, erase};
use crate::{Context, Controller, Result};
use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use serde::de::DeserializeOwned;
use std::{sync::Arc, time::Duration};

/// When a timer runs for each object of its controller; see [`Controller::timer`].
///
/// Every object has its own moment within the interval, which follows from its uid and the time of day. So objects do not run
/// together, and a restart or a change of leader neither shifts a run nor repeats it; a run that falls into a time without a
/// leader is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    pub(crate) name: String,
    pub(crate) interval: Duration,
    pub(crate) idle: Option<Duration>,
    pub(crate) initial_delay: Option<Duration>,
}

/// A timer and its work, with the type of its objects erased.
#[derive(Clone)]
pub(crate) struct TimerSpec {
    pub(crate) timer: Timer,
    pub(crate) work: Work<()>,
}

/// The clock may be set back by this much between the planning of a run and the run, without the run being repeated.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

impl Timer {
    /// Runs once in each interval, for each object.
    pub fn every(interval: Duration) -> Timer {
        Timer {
            name: "timer".into(),
            interval,
            idle: None,
            initial_delay: None,
        }
    }

    /// Names the timer in logs and metrics, after its controller: `greeting/refresh`. A second timer needs a name.
    pub fn named(mut self, name: impl Into<String>) -> Timer {
        self.name = name.into();
        self
    }

    /// Postpones a run until the object has not changed for this long.
    ///
    /// A change of the status alone does not count where the kind counts generations. An object that is found when the
    /// operator starts counts as changed then.
    pub fn idle(mut self, time: Duration) -> Timer {
        self.idle = Some(time);
        self
    }

    /// Does not run for an object before it is this old.
    pub fn initial_delay(mut self, age: Duration) -> Timer {
        self.initial_delay = Some(age);
        self
    }

    /// How long after `now`, at which it does not run, the timer runs first for an object.
    pub(crate) fn first_run(&self, object: &Object, now: Timestamp) -> Duration {
        self.run_after(object, now, Duration::ZERO)
    }

    /// How long after `now`, at which it ran, the timer runs next for an object.
    pub(crate) fn next_run(&self, object: &Object, now: Timestamp) -> Duration {
        self.run_after(object, now, CLOCK_TOLERANCE.min(self.interval / 10))
    }

    fn run_after(&self, object: &Object, now: Timestamp, pause: Duration) -> Duration {
        let pause = self.too_young_for(object, now).unwrap_or_default().max(pause);
        let interval = self.interval.as_nanos().max(1);
        let earliest = now.as_nanosecond().max(0) as u128 + pause.as_nanos();
        let phase = fnv1a(&[&*object.uid, "/", &*self.name]) as u128 % interval;
        let into = (earliest + interval - phase) % interval;
        let wait = pause.as_nanos() + (interval - into) % interval;
        Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// How long until the object is as old as `initial_delay` asks for.
    pub(crate) fn too_young_for(&self, object: &Object, now: Timestamp) -> Option<Duration> {
        let age = SignedDuration::try_from(self.initial_delay?).ok()?;
        let created = object.metadata().metadata.creation_timestamp.clone()?.0;
        let until = created.saturating_add(age).ok()?;
        Duration::try_from(until.duration_since(now)).ok().filter(|left| !left.is_zero())
    }

    /// Why the timer cannot run.
    pub(crate) fn mistake(&self) -> Option<String> {
        self.interval
            .is_zero()
            .then(|| format!("the interval of timer {:?} must be greater than zero", self.name))
    }
}

/// The hash FNV-1a, which is the same in every build: a new one does not move the runs.
pub(crate) fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl<K> Controller<K>
where
    K: Resource<Scope: 'static> + DeserializeOwned + Send + Sync + 'static,
{
    /// Runs `work` for each object in an interval, beside the reconciles and never twice at once for one object.
    ///
    /// It runs while this process leads, with the controller's declared kinds, concurrency, timeout and shutdown grace. A run
    /// that fails is an event on the object, and is retried with the controller's backoff; one that failed permanently, or has
    /// no retries left, waits for the next interval. Objects that are being deleted are left out.
    ///
    /// ```
    /// # use flyball::{Action, Context, Controller, Result, Timer};
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use std::{sync::Arc, time::Duration};
    /// async fn rotate(secret: Arc<Secret>, ctx: Context) -> Result<()> {
    ///     // Ask whether the certificate is about to expire, and renew it.
    ///     Ok(())
    /// }
    /// # async fn reconcile(_: Arc<Secret>, _: Context) -> Result { Ok(Action::await_change()) }
    ///
    /// let daily = Timer::every(Duration::from_secs(24 * 60 * 60)).named("rotate");
    /// let controller = Controller::new(reconcile).timer(daily, rotate);
    /// ```
    pub fn timer<Fut>(
        mut self,
        timer: Timer,
        work: impl Fn(Arc<K>, Context) -> Fut + Send + Sync + 'static,
    ) -> Controller<K>
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let work = erase(self.spec.kind.clone(), work);
        self.spec.timers.push(TimerSpec { timer, work });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn object(uid: &str, created: &str) -> Object {
        let json = format!(r#"{{"metadata":{{"name":"ada","uid":"{uid}","creationTimestamp":"{created}"}}}}"#);
        Object::parse(json).unwrap()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn runs_are_one_interval_apart_wherever_the_operator_starts() {
        let (timer, object) = (Timer::every(seconds(600)), object("u", "2026-01-01T00:00:00Z"));
        let mut start: Timestamp = "2026-01-01T10:00:00Z".parse().unwrap();
        let first = start + timer.first_run(&object, start);
        assert_eq!(timer.next_run(&object, first), seconds(600), "from one run to the next");
        for _ in 0..50 {
            start += seconds(71);
            let next = start + timer.first_run(&object, start);
            assert_eq!(next.duration_since(first).as_nanos() % seconds(600).as_nanos() as i128, 0, "from {start}");
            assert!(next.duration_since(start) < SignedDuration::from_secs(600));
        }
    }

    #[test]
    fn objects_are_spread_over_the_interval() {
        let (timer, now) = (Timer::every(seconds(100)), "2026-01-01T00:00:00Z".parse().unwrap());
        let runs = (0..1_000).map(|uid| timer.first_run(&object(&format!("u-{uid}"), "2026-01-01T00:00:00Z"), now));
        let mut tenths = [0; 10];
        runs.for_each(|run| tenths[run.as_secs() as usize / 10] += 1);
        assert!(tenths.iter().all(|count| (60..150).contains(count)), "{tenths:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_a_little_repeats_no_run() {
        let (timer, object) = (Timer::every(seconds(600)), object("u", "2026-01-01T00:00:00Z"));
        let start: Timestamp = "2026-01-01T10:00:00Z".parse().unwrap();
        let run = start + timer.first_run(&object, start);
        let early = run - Duration::from_millis(500);
        assert_eq!(timer.next_run(&object, early), seconds(600) + Duration::from_millis(500));
    }

    #[test]
    fn an_object_is_left_alone_until_it_is_old_enough() {
        let timer = Timer::every(seconds(10)).initial_delay(seconds(3_600));
        let (object, now) = (object("u", "2026-01-01T00:00:00Z"), "2026-01-01T00:30:00Z".parse().unwrap());
        let wait = timer.first_run(&object, now);
        assert!((seconds(1_800)..=seconds(1_810)).contains(&wait), "{wait:?}");
        assert_eq!(timer.too_young_for(&object, now), Some(seconds(1_800)));
        assert_eq!(timer.too_young_for(&object, now + seconds(1_800)), None);
    }

    #[test]
    fn two_timers_of_one_object_run_apart() {
        let (object, now) = (object("u", "2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z".parse().unwrap());
        let runs: HashSet<_> = ["a", "b", "c"]
            .map(|name| Timer::every(seconds(3_600)).named(name).first_run(&object, now))
            .into();
        assert_eq!(runs.len(), 3);
    }
}
