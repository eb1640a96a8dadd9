//! Runs a controller: takes objects from its queue, reconciles them side by side, and decides when each comes back.

use crate::cache::object::Object;
use crate::cache::{Followed, Mirror};
use crate::context::declared::Declared;
use crate::context::finalizer::{self, Stage};
use crate::declare::controller::ControllerSpec;
use crate::declare::error::Outcome;
use crate::engine::queue::{Job, Priority};
use crate::engine::runtime::{ControllerHandle, Runtime};
use crate::engine::stopping::Stopping;
use crate::engine::trace;
use crate::engine::work::{WorkItem, WorkQueue};
use crate::metrics::Ended;
use crate::{Action, Cache, ConditionStatus, Context, Error, Event, Key, Result, Why};
use futures::FutureExt;
use std::{
    any::Any,
    hash::{BuildHasher, RandomState},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::{JoinSet, consume_budget},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// How long after a reconcile that waits for something else the object is reconciled again, if nothing changes.
const WAITING_DELAY: Duration = Duration::from_secs(30);

/// How long the author's failure hooks may take, with the writes of the failure itself.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait for the list that would contain an object which is not here.
const UNLISTED_DELAY: Duration = Duration::from_secs(5);

/// One running controller, and what its workers share.
pub(crate) struct ControllerLoop {
    pub(crate) controller: ControllerSpec,
    operator: Arc<Runtime>,
    pub(crate) handle: Arc<ControllerHandle>,
    pub(crate) queue: Arc<WorkQueue>,
    pub(crate) mirror: Arc<Mirror>,
    /// As this controller reads it.
    cache: Cache,
    /// What the controller needs followed for as long as it runs.
    _followed: Vec<Arc<Followed>>,
    finalizer: String,
    declared: Arc<Declared>,
    ids: Ids,
}

/// Names for reconciles that are not repeated by another process, or by the same one.
#[derive(Default)]
struct Ids {
    seed: RandomState,
    last: AtomicU64,
}

impl Ids {
    fn next(&self) -> u64 {
        self.seed.hash_one(self.last.fetch_add(1, Ordering::Relaxed))
    }
}

impl ControllerLoop {
    pub(crate) fn new(
        controller: ControllerSpec,
        operator: Arc<Runtime>,
        handle: Arc<ControllerHandle>,
        followed: Vec<Arc<Followed>>,
    ) -> ControllerLoop {
        let (queue, mirror) = (handle.queue.clone(), handle.mirror.clone());
        let cache = operator.cache.selecting(&controller.selections);
        let finalizer = finalizer::name(&operator.name);
        let declared = Arc::new(Declared::of(&controller));
        ControllerLoop {
            controller,
            operator,
            handle,
            queue,
            mirror,
            cache,
            _followed: followed,
            finalizer,
            declared,
            ids: Ids::default(),
        }
    }

    /// Works while this process leads, until `stop`.
    ///
    /// When it stops leading, running reconciles are cancelled. Once it leads again, every object is reconciled: another leader
    /// may have left work half done.
    pub(crate) async fn run(self: Arc<ControllerLoop>, stop: CancellationToken) {
        let (leadership, mut led) = (self.operator.leadership.clone(), false);
        loop {
            let term = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                term = self.operator.begun() => term,
            };
            if std::mem::replace(&mut led, true) {
                self.add_all(Why::Listed);
            }
            tokio::select! {
                biased;
                () = leadership.lost(term) => {}
                () = self.clone().lead(stop.clone()) => return,
            }
        }
    }

    /// Works until `stop`, then lets running reconciles end. Dropped before that, it ends at once.
    pub(crate) async fn lead(self: Arc<ControllerLoop>, stop: CancellationToken) {
        let mut workers = JoinSet::new();
        let mut resync = std::pin::pin!(self.resync());
        loop {
            let free = workers.len() < self.controller.concurrency;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = &mut resync => {}
                Some(_) = workers.join_next() => {}
                item = self.queue.next(), if free => {
                    workers.spawn(self.clone().work(item, stop.clone()));
                }
            }
        }
        let drained = async { while workers.join_next().await.is_some() {} };
        if timeout(self.grace(), drained).await.is_err() {
            let controller = &*self.controller.name;
            tracing::warn!(controller, "reconciles did not end in time and are cancelled");
        }
    }

    /// How long work may take to end once the operator stops.
    pub(crate) fn grace(&self) -> Duration {
        self.controller.shutdown_grace.unwrap_or(self.operator.grace)
    }

    /// Never ends.
    async fn resync(&self) {
        let Some(period) = self.controller.resync else {
            return std::future::pending().await;
        };
        loop {
            sleep(period).await;
            self.add_all(Why::Resync);
        }
    }

    fn add_all(&self, why: Why) {
        for object in self.mirror.list(None) {
            self.queue.add(object.key.clone(), Priority::Background, why.clone());
        }
    }

    /// One worker: reconciles an object, and then others for as long as there are any.
    async fn work(self: Arc<ControllerLoop>, first: WorkItem, stop: CancellationToken) {
        let mut next = Some(first);
        while let Some(item) = next {
            self.reconcile(item).await;
            consume_budget().await;
            next = (!stop.is_cancelled()).then(|| self.queue.try_next()).flatten();
        }
    }

    async fn reconcile(&self, item: WorkItem) {
        let job = &item.job;
        let Some(object) = self.mirror.get(&job.key) else {
            self.absent(job);
            return item.ended();
        };
        let schedule = self.controller.schedule.as_ref();
        if let Some(delay) = schedule.and_then(|schedule| schedule.postponed(&object, self.operator.clock.now())) {
            self.queue.add_after(job.key.clone(), delay, job.priority, job.why.clone());
            return item.ended();
        }
        let ctx = self.context(object, job.why.clone());
        let span = self.span(&job.key, &job.why, ctx.id);
        async {
            let run = self.handle.metrics.began(Some(job.due.elapsed()));
            let result = self.attempt(ctx.clone()).await;
            let how = how(&result);
            run.ended(how);
            let failure = result.as_ref().err().map(ToString::to_string);
            self.ended(job, &ctx, result).await;
            trace::ended(how.result(), failure);
        }
        .instrument(span)
        .await;
        item.ended();
    }

    pub(crate) fn context(&self, object: Arc<Object>, why: Why) -> Context {
        Context {
            operator: self.operator.clone(),
            cache: self.cache.clone(),
            mirror: self.mirror.clone(),
            object,
            id: self.ids.next(),
            why,
            applied: Arc::default(),
            declared: self.declared.clone(),
            ready_condition: self.controller.ready_condition,
            gave_up: false,
            stopping: Stopping::new(self.operator.stop.clone()),
        }
    }

    /// What every line says that is logged meanwhile.
    pub(crate) fn span(&self, key: &Key, why: &Why, id: u64) -> tracing::Span {
        let (operator, controller, kind) = (&*self.operator.name, &*self.controller.name, self.mirror.kind().name());
        trace::reconcile(operator, controller, kind, key, why, id)
    }

    /// Runs what the author wrote, which may fail, panic or take too long.
    async fn attempt(&self, ctx: Context) -> Result {
        let work = AssertUnwindSafe(reconcile(&self.controller, ctx, &self.finalizer)).catch_unwind();
        let most = self.controller.timeout;
        let Ok(ended) = timeout(most, work).await else {
            self.handle.metrics.timed_out();
            return Err(Error::retry(format!("the reconcile did not end within {most:?}")));
        };
        let ended = ended.map_err(|panic| ("reconcile", panic)).and_then(told);
        ended.unwrap_or_else(|(what, panic)| {
            self.handle.metrics.panicked();
            Err(panicked(what, &*panic))
        })
    }

    /// An object is not here: it is gone, or its kind has not been listed yet.
    fn absent(&self, job: &Job<Key>) {
        let key = &job.key;
        if !self.mirror.watches_key(key) {
            tracing::debug!(%key, "ignored: this operator is confined to other namespaces");
            return self.queue.succeeded(key);
        }
        if !self.mirror.has_listed(key) {
            self.queue.add_after(key.clone(), UNLISTED_DELAY, job.priority, job.why.clone());
            return;
        }
        self.queue.succeeded(key);
        for gone in &self.controller.gone {
            if catch_unwind(AssertUnwindSafe(|| gone(key))).is_err() {
                tracing::error!(%key, "`gone` panicked");
            }
        }
    }

    async fn ended(&self, job: &Job<Key>, ctx: &Context, result: Result) {
        match result {
            Ok(action) => {
                self.queue.succeeded(&job.key);
                tracing::debug!(again = ?action.delay(), "reconciled");
                match action.delay() {
                    Some(delay) => self.queue.add_after(job.key.clone(), delay, job.priority, Why::Requeued),
                    None => self.plan(job, ctx),
                }
            }
            Err(error) if self.mirror.get(&job.key).is_none() => {
                tracing::debug!(%error, "reconcile failed: the object is gone");
            }
            Err(error) if error.outcome() == Outcome::Waiting => self.waits(job, ctx, &error).await,
            Err(error) => {
                let again = self.queue.is_added_while_running(&job.key);
                let Some((delay, failures)) = self.failed(&job.key, ctx, error).await else {
                    return self.plan(job, ctx);
                };
                // The report's own status write must not replace the backoff by an immediate attempt.
                if !again && self.changed_in_status_only(ctx) {
                    self.queue.forget_added_while_running(&job.key);
                }
                self.queue.add_after(job.key.clone(), delay, job.priority, Why::Retried(failures));
            }
        }
    }

    /// Shows on the object what it waits for, and reconciles it again after a while, or when something changes.
    async fn waits(&self, job: &Job<Key>, ctx: &Context, error: &Error) {
        self.queue.succeeded(&job.key);
        tracing::info!(key = %job.key, %error, "waiting");
        let again = self.queue.is_added_while_running(&job.key);
        if self.controller.ready_condition && !ctx.object.terminating {
            let message = error.to_string();
            let shown = ctx.set_ready(ConditionStatus::False, "Waiting", &message);
            match timeout(REPORT_TIMEOUT, shown).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the object does not say what it waits for"),
                Err(_) => tracing::warn!("the object does not say what it waits for: the API server is silent"),
            }
        }
        if !again && self.changed_in_status_only(ctx) {
            self.queue.forget_added_while_running(&job.key);
        }
        let left = finalizer::time_left(&self.controller, &ctx.object, self.operator.clock.now());
        let delay = left.map_or(WAITING_DELAY, |left| left.min(WAITING_DELAY));
        self.queue.add_after(job.key.clone(), delay, job.priority, Why::Requeued);
    }

    /// Plans the next run of a timer.
    fn plan(&self, job: &Job<Key>, ctx: &Context) {
        let schedule = self.controller.schedule.as_ref();
        let next = schedule.and_then(|schedule| schedule.next_run(&ctx.object, self.operator.clock.now()));
        if let Some(delay) = next {
            self.queue.add_after(job.key.clone(), delay, job.priority, Why::Timer);
        }
    }

    /// Logs a failure and reports it on the object. Answers with the delay before the next attempt, unless there is none, and
    /// with the number of failures in a row.
    pub(crate) async fn failed(&self, key: &Key, ctx: &Context, error: Error) -> Option<(Duration, u32)> {
        let backoff = &self.controller.backoff;
        let failures = self.queue.failed(key, &error.to_string());
        let exhausted = error.outcome() == Outcome::Retry && !backoff.retries(failures);
        let delay = match error.outcome() {
            Outcome::Retry if exhausted => None,
            Outcome::Retry => Some(backoff.delay(failures, key).max(asked_to_wait(&error))),
            Outcome::RetryAfter(delay) => Some(delay),
            Outcome::Waiting => Some(WAITING_DELAY),
            Outcome::Permanent => None,
        };
        // The cleanup deadline releases an object whatever the outcome of its cleanup says about the next attempt.
        let left = finalizer::time_left(&self.controller, &ctx.object, self.operator.clock.now());
        let delay = delay.into_iter().chain(left).min();
        let next = delay.map_or("when the object changes".into(), |delay| format!("in {delay:.1?}"));
        tracing::warn!(%key, failures, next, %error, "reconcile failed");
        let report = Report { failures, exhausted, gave_up: delay.is_none() };
        self.report(ctx, Arc::new(error), report).await;
        if delay.is_none() {
            self.queue.gave_up(key);
        }
        delay.map(|delay| (delay, failures))
    }

    /// Shows a failure on the object: an event, the condition `Ready`, and what the author does about it.
    async fn report(&self, ctx: &Context, error: Arc<Error>, report: Report) {
        let (reason, note) = match report.exhausted {
            true => {
                let failures = report.failures;
                (
                    "RetriesExhausted",
                    format!("gave up after {failures} failures, until the object changes: {error}"),
                )
            }
            false => ("ReconcileFailed", error.to_string()),
        };
        if report.exhausted || (self.operator.recorder.reports_failures() && !is_conflict(&error)) {
            ctx.event(Event::warning(reason, note.clone()));
        }
        let hooks = async {
            if self.controller.ready_condition && !ctx.object.terminating {
                ctx.set_ready(ConditionStatus::False, reason, &note).await?;
            }
            for on_error in &self.controller.on_error {
                let ctx = Context { gave_up: report.gave_up, ..ctx.clone() };
                on_error(ctx.current(), error.clone(), ctx).await?;
            }
            Ok(())
        };
        let reported = match timeout(REPORT_TIMEOUT, AssertUnwindSafe(hooks).catch_unwind()).await {
            Ok(Ok(reported)) => reported,
            Ok(Err(panic)) => Err(panicked("failure hook", &*panic)),
            Err(_) => Err(Error::retry(format!("the failure hook did not end within {REPORT_TIMEOUT:?}"))),
        };
        if let Err(error) = reported {
            tracing::warn!(%error, "the failure could not be reported on the object");
        }
    }

    /// Whether the object differs from what was reconciled in nothing but its status.
    fn changed_in_status_only(&self, ctx: &Context) -> bool {
        let (kind, current) = (self.mirror.kind(), ctx.current());
        current.version == ctx.object.version
            || current.json().meta().fingerprint(kind) == ctx.object.json().meta().fingerprint(kind)
    }
}

/// What is reported of a failed attempt besides its error.
struct Report {
    failures: u32,
    exhausted: bool,
    gave_up: bool,
}

/// Whether another writer was faster: the next attempt sees the other write, and no user can act on it.
fn is_conflict(error: &Error) -> bool {
    matches!(error.find::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 409)
}

/// The same, unless it is an error whose author cannot say what it is: that is a panic, too.
fn told(result: Result) -> Result<Result, (&'static str, Box<dyn Any + Send>)> {
    match &result {
        Ok(_) => Ok(result),
        Err(error) => match catch_unwind(AssertUnwindSafe(|| error.to_string())) {
            Ok(_) => Ok(result),
            Err(panic) => Err(("error's text", panic)),
        },
    }
}

pub(crate) fn how(result: &Result) -> Ended {
    match result {
        Ok(action) if action.delay().is_some() => Ended::RequeueAfter,
        Ok(_) => Ended::Success,
        Err(error) if error.outcome() == Outcome::Permanent => Ended::Permanent,
        Err(error) if error.outcome() == Outcome::Waiting => Ended::RequeueAfter,
        Err(_) => Ended::Error,
    }
}

/// As long as the API server wants to be left alone (429 with `Retry-After`).
fn asked_to_wait(error: &Error) -> Duration {
    let seconds = match error.find::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.details.as_ref().map_or(0, |details| details.retry_after_seconds),
        _ => 0,
    };
    Duration::from_secs(seconds.into())
}

async fn reconcile(controller: &ControllerSpec, ctx: Context, finalizer: &str) -> Result {
    if controller.cleanup.is_empty() {
        return if ctx.object.terminating {
            terminate(controller, ctx).await
        } else {
            run(controller, ctx).await
        };
    }
    match finalizer::stage(&ctx.object, finalizer) {
        Stage::Reconcile => run(controller, ctx).await,
        Stage::Add => {
            let ctx = finalizer::add(&ctx, finalizer).await?;
            run(controller, ctx).await
        }
        Stage::CleanUp => finalizer::clean_up(controller, &ctx, finalizer).await,
        Stage::Terminating => terminate(controller, ctx).await,
    }
}

async fn run(controller: &ControllerSpec, ctx: Context) -> Result {
    let action = (controller.reconcile)(ctx.object.clone(), ctx.clone()).await?;
    if controller.ready_condition {
        ctx.set_ready(ConditionStatus::True, "Reconciled", "").await?;
    }
    Ok(action)
}

async fn terminate(controller: &ControllerSpec, ctx: Context) -> Result {
    match &controller.terminating {
        Some(terminating) => terminating(ctx.object.clone(), ctx).await,
        None => Ok(Action::await_change()),
    }
}

pub(crate) fn panicked(what: &str, panic: &(dyn Any + Send)) -> Error {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::retry(format!("the {what} panicked: {}", message.unwrap_or("without a message")))
}
