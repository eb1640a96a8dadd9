//! Writes in progress. Each runs in a task of its own: a client that closes its connection, or stops waiting, does not
//! interrupt it half way.

use std::future::Future;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The writes that a server has begun and not finished.
#[derive(Debug, Default)]
pub(crate) struct Writes(watch::Sender<usize>);

impl Writes {
    /// Runs a write to its end, whether or not the handle is kept.
    pub fn spawn<T: Send + 'static>(&self, write: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let running = Running::new(self.0.clone());
        tokio::spawn(async move {
            let _running = running;
            write.await
        })
    }

    /// Waits until no write is in progress.
    pub async fn finished(&self) {
        // The sender lives as long as `self`, so that waiting cannot fail.
        let mut count = self.0.subscribe();
        let _idle = count.wait_for(|running| *running == 0).await;
    }
}

/// Counts one write while it runs.
struct Running(watch::Sender<usize>);

impl Running {
    fn new(count: watch::Sender<usize>) -> Running {
        count.send_modify(|running| *running += 1);
        Running(count)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_write_goes_on_when_its_handle_is_dropped() {
        let (writes, go, done) = (Writes::default(), Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (wait, set) = (go.clone(), done.clone());

        drop(writes.spawn(async move {
            wait.notified().await;
            set.store(true, Ordering::SeqCst);
        }));
        go.notify_one();
        writes.finished().await;

        assert!(done.load(Ordering::SeqCst));
    }
}
