//! Runs a controller: takes objects from its queue, reconciles them side by side, and decides when each comes back.

use crate::{
    Action, Context, Controller, Error, Key, Result,
    cache::{Followed, Mirror},
    error::Outcome,
    finalizer::{self, Stage},
    metrics::{Ended, Run},
    shared::{Control, Shared},
    work::WorkQueue,
};
use futures::FutureExt;
use std::{
    any::Any,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// How long reconciles that are under way may take to end once the operator stops.
const GRACE: Duration = Duration::from_secs(30);

/// One controller at work.
pub(crate) struct Runner {
    controller: Arc<Controller>,
    operator: Arc<Shared>,
    control: Arc<Control>,
    queue: Arc<WorkQueue>,
    mirror: Arc<Mirror>,
    /// What the controller needs followed for as long as it runs.
    _followed: Vec<Arc<Followed>>,
    finalizer: String,
    /// Failures in a row, of objects that have any.
    failures: HashMap<Key, u32>,
    running: JoinSet<(Key, Result, Run)>,
}

impl Runner {
    pub(crate) fn new(
        controller: Controller,
        operator: Arc<Shared>,
        control: Arc<Control>,
        followed: Vec<Arc<Followed>>,
    ) -> Runner {
        let (queue, mirror) = (control.queue.clone(), control.mirror.clone());
        let finalizer = finalizer::name(&operator.name);
        let controller = Arc::new(controller);
        Runner {
            controller,
            operator,
            control,
            queue,
            mirror,
            _followed: followed,
            finalizer,
            failures: HashMap::new(),
            running: JoinSet::new(),
        }
    }

    /// Works until told to stop, then lets what is under way end.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let free = self.running.len() < self.controller.concurrency;
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = self.running.join_next() => self.ended(ended),
                key = self.queue.next(), if free => self.begin(key),
            }
        }
        let drained = async { while self.running.join_next().await.is_some() {} };
        if timeout(GRACE, drained).await.is_err() {
            tracing::warn!(kind = self.mirror.kind().name(), "reconciles did not end in time and are cancelled");
        }
    }

    fn begin(&mut self, key: Key) {
        let Some(object) = self.mirror.get(&key) else {
            self.gone(&key);
            return;
        };
        let ctx = Context {
            operator: self.operator.clone(),
            mirror: self.mirror.clone(),
            object,
        };
        let (controller, finalizer) = (self.controller.clone(), self.finalizer.clone());
        let (operator, kind) = (&*self.operator.name, self.mirror.kind().name());
        let span = tracing::info_span!("reconcile", operator, kind, %key);
        let work = async move { reconcile(&controller, ctx, &finalizer).await };
        let caught = AssertUnwindSafe(work).catch_unwind();
        let (metrics, run) = (self.control.metrics.clone(), self.control.metrics.began(None));
        self.running.spawn(
            async move {
                let result = caught.await.unwrap_or_else(|panic| {
                    metrics.panicked();
                    Err(panicked("reconcile", &*panic))
                });
                (key, result, run)
            }
            .instrument(span),
        );
    }

    fn gone(&mut self, key: &Key) {
        self.failures.remove(key);
        if let Some(gone) = &self.controller.gone
            && catch_unwind(AssertUnwindSafe(|| gone(key))).is_err()
        {
            tracing::error!(%key, "`gone` panicked");
        }
        self.queue.done(key);
    }

    fn ended(&mut self, ended: Result<(Key, Result, Run), tokio::task::JoinError>) {
        // Panics are caught inside; a task is cancelled only when the runtime ends.
        let Ok((key, result, run)) = ended else { return };
        run.ended(how(&result));
        match result {
            Ok(action) => {
                self.failures.remove(&key);
                if let Some(delay) = action.delay() {
                    self.queue.add_after(key.clone(), delay);
                }
            }
            Err(error) => self.failed(&key, &error),
        }
        self.queue.done(&key);
    }

    fn failed(&mut self, key: &Key, error: &Error) {
        let (operator, kind) = (&*self.operator.name, self.mirror.kind().name());
        if self.mirror.get(key).is_none() {
            tracing::debug!(operator, kind, %key, %error, "reconcile failed: the object is gone");
            return;
        }
        let failures = self.failures.entry(key.clone()).or_default();
        *failures += 1;
        let delay = match error.outcome() {
            Outcome::Retry => Some(self.controller.backoff.delay(*failures, key)),
            Outcome::RetryAfter(delay) => Some(delay),
            Outcome::Permanent => None,
        };
        tracing::warn!(operator, kind, %key, failures, retry = ?delay, %error, "reconcile failed");
        if let Some(delay) = delay {
            self.queue.add_after(key.clone(), delay);
        }
    }
}

fn how(result: &Result) -> Ended {
    match result {
        Ok(action) if action.delay().is_some() => Ended::RequeueAfter,
        Ok(_) => Ended::Success,
        Err(error) if error.outcome() == Outcome::Permanent => Ended::Permanent,
        Err(_) => Ended::Error,
    }
}

async fn reconcile(controller: &Controller, ctx: Context, finalizer: &str) -> Result {
    let Some(cleanup) = &controller.cleanup else {
        return if ctx.object.terminating {
            terminate(controller, ctx).await
        } else {
            run(controller, ctx).await
        };
    };
    match finalizer::stage(&ctx.object, finalizer) {
        Stage::Reconcile => run(controller, ctx).await,
        Stage::Add => {
            let ctx = finalizer::add(&ctx, finalizer).await?;
            run(controller, ctx).await
        }
        Stage::CleanUp => {
            cleanup(ctx.object.clone(), ctx.clone()).await?;
            finalizer::remove(&ctx, finalizer).await?;
            Ok(Action::await_change())
        }
        Stage::Terminating => terminate(controller, ctx).await,
    }
}

async fn run(controller: &Controller, ctx: Context) -> Result {
    (controller.reconcile)(ctx.object.clone(), ctx).await
}

async fn terminate(controller: &Controller, ctx: Context) -> Result {
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
