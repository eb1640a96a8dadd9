//! The bounded queue between the callers and the writer.

use crate::{
    Error, Health, Result,
    txn::{Txn, TxnResult},
};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};

/// The most requests that wait for the writer; further callers wait for a place in the queue.
const MAX_QUEUED: usize = 4_096;

/// The most requests, and about the most bytes, of one group commit, so that the first one does not wait for all.
pub(crate) const MAX_BATCH: usize = 1_024;
const MAX_BATCH_BYTES: usize = 16 << 20;

/// A request to the writer.
pub(crate) enum Job {
    Commit { txn: Txn, reply: Reply<TxnResult> },
    Compact { revision: u64, reply: Reply<()> },
    Health { reply: oneshot::Sender<Health> },
    Close { reply: Reply<()> },
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// The callers' end. The writer ends when it is dropped; requests that are queued when the writer ends are dropped.
pub(crate) struct CommitQueue(mpsc::Sender<Job>);

pub(crate) fn commit_queue() -> (CommitQueue, mpsc::Receiver<Job>) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED);
    (CommitQueue(sender), receiver)
}

impl CommitQueue {
    /// Queues a request, in the order of calls, and waits for the answer; [`Error::Closed`] where the writer has ended.
    pub async fn submit<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        // Waits only where the queue is full: `send` may also yield to other tasks, which would change the order.
        match self.0.try_send(job(reply)) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => self.0.send(job).await.map_err(|_| Error::Closed)?,
            Err(TrySendError::Closed(_)) => return Err(Error::Closed),
        }
        answer.await.map_err(|_| Error::Closed)
    }
}

/// Blocks until there is a request; returns it with those that are queued behind it. `None` where there will be none.
pub(crate) fn next_batch(queue: &mut mpsc::Receiver<Job>) -> Option<Vec<Job>> {
    let mut jobs = vec![queue.blocking_recv()?];
    let mut bytes = size(&jobs[0]);
    while jobs.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
        let Ok(job) = queue.try_recv() else { break };
        bytes += size(&job);
        jobs.push(job);
    }
    Some(jobs)
}

fn size(job: &Job) -> usize {
    match job {
        Job::Commit { txn, .. } => txn.size(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expect, Op};
    use futures::{FutureExt, future::join_all};

    #[test]
    fn the_queue_and_its_batches_are_bounded() {
        let (queue, mut receiver) = commit_queue();
        let commit = |length: usize| {
            let txn = Txn::new(vec![Op::put("/a", vec![b'v'; length], Expect::Anything)]).unwrap();
            queue.submit(|reply| Job::Commit { txn, reply })
        };
        let mut commits = join_all((0..MAX_QUEUED + 10).map(|_| commit(1)));
        assert!((&mut commits).now_or_never().is_none());
        assert_eq!(queue.0.capacity(), 0, "further callers wait");
        for _ in 0..MAX_QUEUED / MAX_BATCH {
            assert_eq!(next_batch(&mut receiver).unwrap().len(), MAX_BATCH);
        }
        let mut large = join_all((0..3).map(|_| commit(MAX_BATCH_BYTES / 2)));
        assert!((&mut large).now_or_never().is_none());
        let batches = [next_batch(&mut receiver).unwrap(), next_batch(&mut receiver).unwrap()];
        assert_eq!(batches.map(|batch| batch.len()), [2, 1]);
        drop(receiver);
        assert!(commits.now_or_never().unwrap().iter().all(|answer| matches!(answer, Err(Error::Closed))));
    }
}
