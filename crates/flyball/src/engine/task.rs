//! Runs an operator's tasks: some on every replica, some only where it leads.

use crate::declare::operator::Task;
use crate::declare::task::{LeaderTask, TaskContext};
use crate::engine::runner::panicked;
use crate::engine::runtime::Runtime;
use crate::engine::stopping::Stopping;
use crate::{Backoff, Metrics, Result};
use futures::FutureExt;
use kube::Client;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Runs a task until it succeeds or is cancelled.
pub(crate) async fn run(task: Task, client: Client, metrics: Metrics, stop: CancellationToken) {
    let work = repeat(&task.name, &metrics, || (task.work)(client.clone()));
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

/// Runs a task whenever this process leads, until told to stop.
pub(crate) async fn run_while_leading(operator: Arc<Runtime>, task: LeaderTask, stop: CancellationToken) {
    let leadership = operator.leadership.clone();
    loop {
        let term = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            term = operator.begun() => term,
        };
        let ctx = TaskContext {
            operator: operator.clone(),
            stopping: Stopping::new(stop.clone()),
        };
        let work = repeat(&task.name, &operator.metrics, || (task.work)(ctx.clone()));
        let work = async {
            ctx.stopping.run(work, operator.grace).await;
            stop.cancelled().await;
        };
        tokio::select! {
            biased;
            () = leadership.lost(term) => tracing::info!(task = task.name, "stopped leading, the task is cancelled"),
            () = work => return,
        }
    }
}

/// Runs `work` until it succeeds, with growing delays between attempts.
async fn repeat<Fut>(name: &str, metrics: &Metrics, work: impl Fn() -> Fut)
where
    Fut: Future<Output = Result<()>>,
{
    let mut failures = 0;
    loop {
        let attempt = AssertUnwindSafe(async { work().await }).catch_unwind();
        let ended = attempt.await.unwrap_or_else(|panic| Err(panicked("task", &*panic)));
        metrics.task_ended(name, ended.is_ok());
        let Err(error) = ended else { return };
        failures += 1;
        let delay = Backoff::default().delay(failures, &name);
        tracing::warn!(task = name, failures, retry = ?delay, %error, "task failed");
        sleep(delay).await;
    }
}
