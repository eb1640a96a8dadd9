//! Work of an operator that belongs to no object and runs only where the operator leads.

use crate::engine::runtime::Runtime;
use crate::engine::stopping::Stopping;
use crate::{Cache, Metrics, Operator, Result};
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use std::sync::Arc;

/// What a leader's task is given: the client, cached reads, metrics, the time, and the signal to end.
#[derive(Clone)]
pub struct TaskContext {
    pub(crate) operator: Arc<Runtime>,
    pub(crate) stopping: Stopping,
}

/// Work that runs while this process leads.
#[derive(Clone)]
pub(crate) struct LeaderTask {
    pub(crate) name: String,
    pub(crate) work: Arc<dyn Fn(TaskContext) -> BoxFuture<'static, Result<()>> + Send + Sync>,
}

impl TaskContext {
    /// The client, which writes only while this process leads.
    pub fn client(&self) -> Client {
        self.operator.client.clone()
    }

    /// What the operator's controllers cache.
    pub fn cache(&self) -> &Cache {
        &self.operator.cache
    }

    /// The operator's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.operator.metrics
    }

    /// The time, to the second. It follows tokio's clock while that is paused.
    pub fn now(&self) -> Time {
        crate::clock::time(self.operator.clock)
    }

    /// Waits until the operator stops. A task that awaits this is given the operator's shutdown grace to end by itself.
    pub async fn stopping(&self) {
        self.stopping.wait().await;
    }
}

impl Operator {
    /// Runs `work` beside the controllers while this process leads: of several replicas, one runs it.
    ///
    /// It is cancelled when this process stops leading or the operator stops, and starts again when this process leads again.
    /// If it fails or panics, that is logged and counted (`flyball_task_runs_total`), and it starts again after a delay that
    /// grows; once it succeeds it is done until the process leads again. Its client writes only while this process leads.
    /// [`Operator::permission`] declares the rights that it needs.
    ///
    /// ```
    /// # use flyball::{Operator, TaskContext};
    /// # use std::time::Duration;
    /// let operator = Operator::new("greeter").leader_task("prices", |ctx: TaskContext| async move {
    ///     loop {
    ///         // Fetch prices, and write them with `ctx.client()`.
    ///         tokio::time::sleep(Duration::from_secs(60)).await;
    ///     }
    /// });
    /// ```
    pub fn leader_task<Fut>(
        mut self,
        name: impl Into<String>,
        work: impl Fn(TaskContext) -> Fut + Send + Sync + 'static,
    ) -> Operator
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let work = Arc::new(move |ctx| -> BoxFuture<'static, Result<()>> { Box::pin(work(ctx)) });
        self.leader_tasks.push(LeaderTask { name: name.into(), work });
        self
    }
}

impl std::fmt::Debug for LeaderTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LeaderTask {}", self.name)
    }
}

impl std::fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskContext of {}", self.operator.name)
    }
}
