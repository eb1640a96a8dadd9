//! Keeps a daemon running for each object: starts it when the object appears, cancels it when the object goes, starts it again
//! after a failure.

use crate::cache::object::Object;
use crate::cache::{Change, Followed, Mirror, Subscriber};
use crate::declare::controller::ControllerSpec;
use crate::declare::daemon::DaemonSpec;
use crate::engine::queue::Priority;
use crate::engine::runner::{ControllerLoop, how, panicked};
use crate::engine::runtime::Runtime;
use crate::engine::stopping::Stopping;
use crate::engine::work::WorkQueue;
use crate::{Action, Context, Key, Result, Why};
use futures::FutureExt;
use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

/// Keeps a controller's daemon running for each object while this process leads, until told to stop.
pub(crate) async fn run(
    operator: Arc<Runtime>,
    controller: ControllerSpec,
    daemon: DaemonSpec,
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
        let daemons = Daemons {
            daemon_loop: begin(&operator, &controller, &daemon, followed.clone()),
            stop: stop.clone(),
            by_key: HashMap::new(),
            tasks: JoinSet::new(),
            started: 0,
        };
        tokio::select! {
            biased;
            () = leadership.lost(term) => {}
            () = daemons.keep() => return,
        }
    }
}

fn begin(
    operator: &Arc<Runtime>,
    controller: &ControllerSpec,
    daemon: &DaemonSpec,
    followed: Vec<Arc<Followed>>,
) -> Arc<ControllerLoop> {
    let work = daemon.work.clone();
    let spec = ControllerSpec {
        reconcile: Arc::new(move |object, ctx| {
            let run = work(object, ctx);
            Box::pin(async move { run.await.map(|()| Action::await_change()) })
        }),
        rate: None,
        ..controller.beside(&daemon.name)
    };
    let handle = operator.register(&spec);
    handle.mirror.subscribe(looking(&handle.queue));
    Arc::new(ControllerLoop::new(spec, operator.clone(), handle, followed))
}

/// Has every object looked at that changes.
fn looking(queue: &Arc<WorkQueue>) -> Subscriber {
    let tell = |_: &Mirror, change: &Change, queue: &WorkQueue| {
        if let Some(key) = change.key() {
            queue.add(key.clone(), Priority::Live, change.why());
        }
    };
    Subscriber { queue: Arc::downgrade(queue), tell: Arc::new(tell) }
}

/// The daemons of one term of leadership.
struct Daemons {
    daemon_loop: Arc<ControllerLoop>,
    stop: CancellationToken,
    /// One entry per object, also for daemons that have ended by themselves.
    by_key: HashMap<Key, Entry>,
    /// Each answers with its object and its number.
    tasks: JoinSet<(Key, u64)>,
    started: u64,
}

struct Entry {
    number: u64,
    uid: Box<str>,
    /// The object that the daemon was last started for, without its status.
    print: u64,
    stop: CancellationToken,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
}

impl Daemons {
    async fn keep(mut self) {
        let queue = self.daemon_loop.queue.clone();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(ended) = self.tasks.join_next() => self.ended(ended.ok()),
                item = queue.next() => {
                    self.look_at(&item.job.key, item.job.why.clone());
                    item.ended();
                }
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Forgets a task that was cancelled. One that ended by itself is remembered, so that it does not start again.
    fn ended(&mut self, ended: Option<(Key, u64)>) {
        let Some((key, number)) = ended else { return };
        let cancelled = |entry: &Entry| entry.number == number && entry.stop.is_cancelled();
        match self.by_key.get(&key).is_some_and(cancelled) {
            true => drop(self.by_key.remove(&key)),
            // The object may have changed while the daemon failed for good.
            false => self.look_at(&key, Why::Changed),
        }
    }

    fn look_at(&mut self, key: &Key, why: Why) {
        let object = self.daemon_loop.mirror.get(key).filter(|object| !object.terminating);
        let Some(object) = object else {
            self.daemon_loop.queue.succeeded(key);
            if let Some(entry) = self.by_key.get(key) {
                entry.stop.cancel();
                if entry.ended.is_cancelled() {
                    self.by_key.remove(key);
                }
            }
            return;
        };
        match self.by_key.get(key) {
            Some(entry) if self.is_kept(entry, &object) => {}
            Some(entry) => {
                entry.stop.cancel();
                let previous = entry.ended.clone();
                self.start(&object, why, Some(previous));
            }
            None => self.start(&object, why, None),
        }
    }

    /// Whether an object's daemon runs, or has ended and is not to start again before the object changes.
    fn is_kept(&self, entry: &Entry, object: &Object) -> bool {
        let failed = entry.ended.is_cancelled() && self.daemon_loop.queue.is_failing(&object.key);
        let same = entry.uid == object.uid && !entry.stop.is_cancelled();
        same && !(failed && entry.print != self.print(object))
    }

    fn print(&self, object: &Object) -> u64 {
        object.json().meta().fingerprint(self.daemon_loop.mirror.kind())
    }

    fn start(&mut self, object: &Object, why: Why, previous: Option<CancellationToken>) {
        self.started += 1;
        let entry = Entry {
            number: self.started,
            uid: object.uid.clone(),
            print: self.print(object),
            stop: self.stop.child_token(),
            ended: CancellationToken::new(),
        };
        let task = Task {
            daemon_loop: self.daemon_loop.clone(),
            key: object.key.clone(),
            uid: object.uid.clone(),
            stop: entry.stop.clone(),
            _ended: entry.ended.clone().drop_guard(),
        };
        let (key, number) = (object.key.clone(), entry.number);
        self.tasks.spawn(async move {
            if let Some(previous) = previous {
                previous.cancelled().await;
            }
            task.run(why).await;
            (key, number)
        });
        self.by_key.insert(object.key.clone(), entry);
    }
}

/// The task of one daemon.
struct Task {
    daemon_loop: Arc<ControllerLoop>,
    key: Key,
    uid: Box<str>,
    stop: CancellationToken,
    _ended: DropGuard,
}

impl Task {
    /// Runs the daemon until it succeeds, is cancelled, or has no retries left.
    async fn run(self, mut why: Why) {
        while let Some(object) = self.object() {
            let ctx = Context {
                stopping: Stopping::new(self.stop.clone()),
                ..self.daemon_loop.context(object, why)
            };
            let span = self.daemon_loop.span(&self.key, &ctx.why, ctx.id);
            let began = Instant::now();
            let Some(result) = self.attempt(&ctx).instrument(span.clone()).await else {
                return;
            };
            let Err(error) = result else {
                self.daemon_loop.queue.succeeded(&self.key);
                return;
            };
            let backoff = &self.daemon_loop.controller.backoff;
            if began.elapsed() > backoff.max {
                self.daemon_loop.queue.succeeded(&self.key);
            }
            let Some((delay, failures)) = self.daemon_loop.failed(&self.key, &ctx, error).instrument(span).await else {
                return;
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = sleep(delay) => why = Why::Retried(failures),
            }
        }
    }

    /// The object as it is now, unless it is gone or another has taken its name.
    fn object(&self) -> Option<Arc<Object>> {
        let object = self.daemon_loop.mirror.get(&self.key)?;
        (object.uid == self.uid && !object.terminating && !self.stop.is_cancelled()).then_some(object)
    }

    /// One run; nothing if it was cancelled.
    async fn attempt(&self, ctx: &Context) -> Option<Result> {
        let metrics = &self.daemon_loop.handle.metrics;
        let run = metrics.began(None);
        let work = (self.daemon_loop.controller.reconcile)(ctx.object.clone(), ctx.clone());
        let work = AssertUnwindSafe(work).catch_unwind();
        let ended = ctx.stopping.run(work, self.daemon_loop.grace()).await?;
        let result = ended.unwrap_or_else(|panic| {
            metrics.panicked();
            Err(panicked("daemon", &*panic))
        });
        run.ended(how(&result));
        Some(result)
    }
}
