//! The receiving end of a watch: first what the history holds, then what happens.

use crate::{
    Error, Event, Result,
    history::{Change, Chunk},
    record::Record,
    view::View,
    watchers::{Batch, Queue},
};
use bytes::Bytes;
use futures::Stream;
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// Every change under a prefix above a revision, in order; a stream that ends after its first error.
pub struct Watch {
    revision: u64,
    past: Past,
    batch: Batch,
    queue: Queue,
    is_ended: bool,
    /// What fills the queue for this watch alone, if anything does.
    feeder: Option<Box<dyn Send + Sync>>,
}

/// The changes of the history that a watch has not handed out yet.
pub(crate) struct Past {
    pub prefix: Bytes,
    pub after: u64,
    pub chunks: VecDeque<Arc<Chunk>>,
    /// The revision at which the history ends; changes up to it may also be in the queue.
    pub until: u64,
    /// The place in the first chunk.
    pub at: usize,
    /// Where the values are that are not in memory.
    pub view: View,
    /// What was read ahead.
    pub ready: VecDeque<Event>,
}

/// So many changes of the history, and about so many bytes of values, are read together.
const READ_AT_ONCE: usize = 64;
const READ_BYTES: usize = 256 << 10;

impl Watch {
    pub(crate) fn new(past: Past, queue: Queue) -> Watch {
        Watch {
            revision: past.after,
            past,
            batch: Batch::default(),
            queue,
            is_ended: false,
            feeder: None,
        }
    }

    /// Keeps something as long as the watch lives.
    #[cfg(feature = "etcd")]
    pub(crate) fn fed_by(self, feeder: impl Send + Sync + 'static) -> Watch {
        Watch { feeder: Some(Box::new(feeder)), ..self }
    }

    /// Returns the revision up to which every change has been handed out, so that a watch after it misses nothing and
    /// repeats nothing.
    pub fn revision(&self) -> u64 {
        let published = self.queue.published();
        let is_idle = self.past.is_empty() && self.batch.events.is_empty() && self.queue.is_empty();
        if is_idle && !self.is_ended {
            self.revision.max(published)
        } else {
            self.revision
        }
    }

    /// Waits for the next change; `None` after an error.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>>> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Arc<Event>>>> {
        loop {
            if self.is_ended {
                return Poll::Ready(None);
            }
            match self.ready().transpose() {
                Ok(Some(event)) => return Poll::Ready(Some(Ok(event))),
                Ok(None) => {}
                Err(error) => return self.end(error),
            }
            match std::task::ready!(self.queue.poll(cx)) {
                Some(Ok(batch)) => self.batch = batch,
                Some(Err(error)) => return self.end(error),
                None => self.is_ended = true,
            }
        }
    }

    fn end(&mut self, error: Error) -> Poll<Option<Result<Arc<Event>>>> {
        self.is_ended = true;
        self.feeder = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Takes the next change that needs no waiting for.
    fn ready(&mut self) -> Option<Result<Arc<Event>>> {
        let next = self.past.next().or_else(|| self.batch.next(self.past.until).map(Ok))?;
        let event = next.map(|(event, is_last)| {
            self.revision = if is_last { event.revision } else { event.revision - 1 };
            event
        });
        Some(event)
    }
}

impl Stream for Watch {
    type Item = Result<Arc<Event>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(cx)
    }
}

impl Past {
    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.ready.is_empty()
    }

    /// Takes the next event, and says whether it is the last of its revision.
    fn next(&mut self) -> Option<Result<(Arc<Event>, bool)>> {
        if self.ready.is_empty() {
            let view = self.view.clone();
            let changes = self.take();
            match view.events(&changes) {
                Ok(events) => self.ready.extend(events),
                Err(error) => return Some(Err(error)),
            }
        }
        let event = self.ready.pop_front()?;
        let next = self.ready.front().map(|next| next.revision);
        let next = next.or_else(|| self.peek().map(Change::revision));
        let is_last = next != Some(event.revision);
        Some(Ok((Arc::new(event), is_last)))
    }

    /// Takes the next changes.
    fn take(&mut self) -> Vec<Change> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while changes.len() < READ_AT_ONCE && bytes < READ_BYTES {
            let Some(change) = self.peek().cloned() else { break };
            bytes += change.record.size() + change.previous.as_ref().map_or(0, Record::size);
            changes.push(change);
            self.at += 1;
        }
        changes
    }

    fn peek(&mut self) -> Option<&Change> {
        loop {
            let chunk = self.chunks.front()?;
            let wanted =
                |change: &Change| change.revision() > self.after && change.record.key().starts_with(&self.prefix);
            match chunk.range(self.at..).position(wanted) {
                Some(skipped) => {
                    self.at += skipped;
                    break;
                }
                None => {
                    self.at = 0;
                    self.chunks.pop_front();
                    if self.chunks.is_empty() {
                        // What is removed on disk is kept for this view only.
                        self.view = View::default();
                    }
                }
            }
        }
        self.chunks.front()?.get(self.at)
    }
}

impl Batch {
    /// Takes the next event above a revision, and says whether it is the last of its revision.
    fn next(&mut self, after: u64) -> Option<(Arc<Event>, bool)> {
        while let Some(event) = self.events.get(self.at).cloned() {
            self.at += 1;
            let next = self.events.get(self.at).map(|next| next.revision);
            if next.is_none() {
                *self = Batch::default();
            }
            if event.revision > after {
                let is_last = next != Some(event.revision);
                return Some((event, is_last));
            }
        }
        None
    }
}
