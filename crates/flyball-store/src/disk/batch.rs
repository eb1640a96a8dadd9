//! Commits that share one flush, and those who wait for it.

use super::desk::Desk;
use crate::{Error, Result, ahead::Generation, history::Change, plan::Plan};
use std::{path::Path, sync::Arc};
use tokio::sync::oneshot;

pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// What is decided and waits for the disk. Refusals wait too: they may be because of what the disk does not have yet.
#[derive(Default)]
pub(crate) struct Batch {
    pub plan: Plan,
    /// Up to this revision the history is to be cut.
    pub cut: u64,
    /// Each waits for a revision to be on disk.
    pub commits: Vec<(Reply<()>, u64)>,
    pub compactions: Vec<(Reply<()>, Result<()>)>,
    /// The history that ends with it.
    pub gone: Vec<Change>,
    /// What was decided long ago, and is dropped with this: those who commit are waited for, and this takes a while.
    pub forgotten: Option<Generation>,
}

impl Batch {
    /// Has room for so many commits.
    pub fn of(commits: usize) -> Batch {
        Batch {
            plan: Plan::of(commits),
            commits: Vec::with_capacity(commits),
            ..Batch::default()
        }
    }

    /// How many wait for it.
    pub fn len(&self) -> usize {
        self.commits.len() + self.compactions.len()
    }

    /// Shows a batch that is on disk to everybody: readers, those who asked, and those who watch.
    pub fn finish(mut self, desk: &Desk) {
        let mut commits = self.commits.into_iter().peekable();
        // Whoever does not wait for an answer any more is not told.
        desk.core.apply(&mut self.plan, |reached| {
            while let Some((reply, _)) = commits.next_if(|(_, awaited)| *awaited <= reached) {
                reply.send(Ok(())).ok();
            }
        });
        for (reply, _) in commits {
            reply.send(Ok(())).ok();
        }
        for (reply, checked) in self.compactions {
            reply.send(checked).ok();
        }
        desk.core.publish(&self.plan);
    }

    /// Tells those who wait that nothing is written any more.
    pub fn refuse(self, path: &Path, failure: &Arc<fjall::Error>) {
        let error = || Error::write(path, failure.clone());
        for (reply, _) in self.commits {
            reply.send(Err(error())).ok();
        }
        for (reply, _) in self.compactions {
            reply.send(Err(error())).ok();
        }
    }
}
