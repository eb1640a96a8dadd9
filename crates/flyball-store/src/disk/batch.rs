//! Commits that share one flush, and those who wait for it.

use super::desk::Desk;
use crate::{Committed, Error, Result, history::Change, plan::Plan};
use std::{path::Path, sync::Arc};
use tokio::sync::oneshot;

pub(crate) type Reply<T> = oneshot::Sender<Result<T>>;

/// What is decided and waits for the disk. Refusals wait too: they may be because of what the disk does not have yet.
#[derive(Default)]
pub(crate) struct Batch {
    pub plan: Plan,
    /// Up to this revision the history is to be cut.
    pub cut: u64,
    pub commits: Vec<(Reply<Committed>, Result<Committed>)>,
    pub compactions: Vec<(Reply<()>, Result<()>)>,
    /// The history that ends with it.
    pub gone: Vec<Change>,
}

impl Batch {
    /// How many wait for it.
    pub fn len(&self) -> usize {
        self.commits.len() + self.compactions.len()
    }

    /// Shows a batch that is on disk to everybody: readers, those who asked, and those who watch.
    pub fn finish(self, desk: &Desk) {
        let mut commits = self.commits.into_iter().peekable();
        // Whoever does not wait for an answer any more is not told.
        desk.core.apply(&self.plan, |reached| {
            let is_answered =
                |commit: &(_, Result<Committed>)| commit.1.as_ref().map_or(true, |it| it.revision <= reached);
            while let Some((reply, committed)) = commits.next_if(is_answered) {
                reply.send(committed).ok();
            }
        });
        for (reply, committed) in commits {
            reply.send(committed).ok();
        }
        desk.forget(&self.plan);
        for (reply, checked) in self.compactions {
            reply.send(checked).ok();
        }
        desk.core.publish(&self.plan);
    }

    /// Tells those who wait that nothing is written any more.
    pub fn refuse(self, desk: &Desk, path: &Path, failure: &Arc<fjall::Error>) {
        desk.forget(&self.plan);
        let error = || Error::write(path, failure.clone());
        for (reply, _) in self.commits {
            reply.send(Err(error())).ok();
        }
        for (reply, _) in self.compactions {
            reply.send(Err(error())).ok();
        }
    }
}
