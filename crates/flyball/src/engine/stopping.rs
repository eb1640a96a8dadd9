//! The signal that work is to end. Work that awaits it is given time to end by itself; other work is dropped.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// One piece of work's signal to end.
#[derive(Clone, Debug)]
pub(crate) struct Stopping {
    token: CancellationToken,
    /// Whether the work has awaited the signal.
    awaited: Arc<AtomicBool>,
}

impl Stopping {
    pub(crate) fn new(token: CancellationToken) -> Stopping {
        Stopping { token, awaited: Arc::default() }
    }

    /// Waits for the signal.
    pub(crate) async fn wait(&self) {
        self.awaited.store(true, Ordering::Relaxed);
        self.token.cancelled().await;
    }

    /// Runs `work` to its end, or until the signal, and then for `grace` if the work awaits the signal.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>, grace: Duration) -> Option<T> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            () = self.token.cancelled() => {}
            ended = &mut work => return Some(ended),
        }
        match self.awaited.load(Ordering::Relaxed) {
            true => timeout(grace, work).await.ok(),
            false => None,
        }
    }
}
