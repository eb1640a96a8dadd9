//! Runs a timer: a controller loop whose queue is filled by the clock. Each term of leadership begins with a new queue, so what
//! became due while another process led does not run all at once.

use crate::cache::kind::Kind;
use crate::cache::object::Object;
use crate::cache::{Change, Followed, Subscriber};
use crate::clock::Clock;
use crate::declare::controller::ControllerSpec;
use crate::declare::timer::{Timer, TimerSpec};
use crate::engine::queue::Priority;
use crate::engine::runner::ControllerLoop;
use crate::engine::runtime::Runtime;
use crate::engine::work::WorkQueue;
use crate::{Action, Key, Why};
use jiff::Timestamp;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// When a timer runs for each object.
#[derive(Debug)]
pub(crate) struct Schedule {
    timer: Timer,
    /// When each object changed last, if the timer waits for idle objects.
    changed: Mutex<HashMap<Key, Instant>>,
}

impl Schedule {
    fn new(timer: Timer) -> Schedule {
        Schedule { timer, changed: Mutex::default() }
    }

    fn first_run(&self, object: &Object, now: Timestamp) -> Option<Duration> {
        (!object.terminating).then(|| self.timer.first_run(object, now))
    }

    /// How long until the next run for an object for which it has just run; none for one that is being deleted.
    pub(crate) fn next_run(&self, object: &Object, now: Timestamp) -> Option<Duration> {
        (!object.terminating).then(|| self.timer.next_run(object, now))
    }

    /// How much longer an object is to be left alone although its run is due.
    pub(crate) fn postponed(&self, object: &Object, now: Timestamp) -> Option<Duration> {
        let changed = self.changed().get(&object.key).copied();
        let idle = self.timer.idle.zip(changed);
        let busy = idle.map(|(idle, changed)| idle.saturating_sub(changed.elapsed()));
        let busy = busy.filter(|left| !left.is_zero());
        self.timer.too_young_for(object, now).max(busy)
    }

    fn observe(&self, kind: &Kind, change: &Change) {
        if self.timer.idle.is_none() {
            return;
        }
        match (&change.old, &change.new) {
            (Some(old), Some(new)) if print(old, kind) == print(new, kind) => {}
            (_, Some(new)) => {
                self.changed().insert(new.key.clone(), Instant::now());
            }
            (Some(old), None) => {
                self.changed().remove(&old.key);
            }
            (None, None) => {}
        }
    }

    fn changed(&self) -> MutexGuard<'_, HashMap<Key, Instant>> {
        self.changed.lock().expect("nothing panics under this lock")
    }
}

fn print(object: &Object, kind: &Kind) -> u64 {
    object.json().meta().fingerprint(kind)
}

/// Runs a controller's timer while this process leads, until told to stop.
pub(crate) async fn run(
    operator: Arc<Runtime>,
    controller: ControllerSpec,
    timer: TimerSpec,
    followed: Vec<Arc<Followed>>,
    stop: CancellationToken,
) {
    let leadership = operator.leadership.clone();
    loop {
        let term = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            term = operator.begun() => term,
        };
        let controller_loop = begin(&operator, &controller, &timer, followed.clone());
        tokio::select! {
            biased;
            () = leadership.lost(term) => {}
            () = controller_loop.lead(stop.clone()) => return,
        }
    }
}

fn begin(
    operator: &Arc<Runtime>,
    controller: &ControllerSpec,
    timer: &TimerSpec,
    followed: Vec<Arc<Followed>>,
) -> Arc<ControllerLoop> {
    let schedule = Arc::new(Schedule::new(timer.timer.clone()));
    let work = timer.work.clone();
    let spec = ControllerSpec {
        reconcile: Arc::new(move |object, ctx| {
            let run = work(object, ctx);
            Box::pin(async move { run.await.map(|()| Action::await_change()) })
        }),
        schedule: Some(schedule.clone()),
        rate: None,
        ..controller.beside(&timer.timer.name)
    };
    let handle = operator.register(&spec);
    handle.mirror.subscribe(planning(&handle.queue, schedule, operator.clock));
    Arc::new(ControllerLoop::new(spec, operator.clone(), handle, followed))
}

/// Plans the first run for every object that is there or appears.
fn planning(queue: &Arc<WorkQueue>, schedule: Arc<Schedule>, clock: Clock) -> Subscriber {
    let tell = move |mirror: &crate::cache::Mirror, change: &Change, queue: &WorkQueue| {
        schedule.observe(mirror.kind(), change);
        let Some(new) = &change.new else { return };
        let appeared = change.old.as_ref().is_none_or(|old| old.uid != new.uid);
        if let Some(delay) = schedule.first_run(new, clock.now()).filter(|_| appeared) {
            queue.add_after(new.key.clone(), delay, Priority::Live, Why::Timer);
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}
