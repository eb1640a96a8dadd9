//! The receiving end of a watch: first the changes of the history, then those that are published.

use crate::{
    Error, Event, Result,
    history::{Change, Chunk},
    read_snapshot::ReadSnapshot,
    record::Record,
    watch_hub::{Batch, Queue},
};
use bytes::Bytes;
use futures::Stream;
use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::task::JoinHandle;

/// Every change under a prefix above a revision, in order; a stream that ends after its first error.
pub struct Watch {
    revision: u64,
    past: Past,
    batch: Batch,
    queue: Queue,
    is_ended: bool,
    /// The task that fills the queue for this watch alone, if there is one.
    feeder: Option<Box<dyn Send + Sync>>,
}

/// The changes of the history that a watch has not handed out yet.
pub(crate) struct Past {
    prefix: Bytes,
    after: u64,
    chunks: VecDeque<Arc<Chunk>>,
    /// The revision at which the history ends; changes up to it may also be in the queue.
    until: u64,
    /// The place in the first chunk.
    at: usize,
    /// Where the values are read that are not in memory; released with the last chunk.
    snapshot: ReadSnapshot,
    /// Events that are being read from disk, on the blocking pool.
    reading: Option<JoinHandle<Result<Vec<Event>>>>,
    /// Events that were read ahead.
    ready: VecDeque<Event>,
}

/// An event, and whether it is the last of its revision.
type Next = (Arc<Event>, bool);

/// The most changes of the history, and about the most bytes of values, that are read together.
const MAX_READ: usize = 64;
const MAX_READ_BYTES: usize = 256 << 10;

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

    /// Keeps the task that feeds the watch as long as the watch lives.
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
            let past = std::task::ready!(self.past.poll(cx));
            match past.or_else(|| self.batch.next(self.past.until).map(Ok)) {
                Some(Ok((event, is_last))) => {
                    self.revision = if is_last { event.revision } else { event.revision - 1 };
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Err(error)) => return self.end(error),
                None => {}
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
}

impl Stream for Watch {
    type Item = Result<Arc<Event>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(cx)
    }
}

impl Past {
    pub fn new(prefix: Bytes, after: u64, until: u64, chunks: Vec<Arc<Chunk>>, snapshot: ReadSnapshot) -> Past {
        Past {
            prefix,
            after,
            chunks: chunks.into(),
            until,
            at: 0,
            snapshot,
            reading: None,
            ready: VecDeque::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.reading.is_none() && self.ready.is_empty()
    }

    /// Takes the next event; `None` after the last.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Next>>> {
        if self.ready.is_empty() {
            match std::task::ready!(self.read(cx)) {
                Ok(events) => self.ready.extend(events),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let Some(event) = self.ready.pop_front() else {
            return Poll::Ready(None);
        };
        let next = self.ready.front().map(|next| next.revision);
        let next = next.or_else(|| self.peek().map(Change::revision));
        let is_last = next != Some(event.revision);
        Poll::Ready(Some(Ok((Arc::new(event), is_last))))
    }

    /// Reads the next events: at once where their values are in memory, and on the blocking pool where they are on disk.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Event>>> {
        if self.reading.is_none() {
            let snapshot = self.snapshot.clone();
            let changes = self.take();
            if changes.iter().flat_map(Change::values).all(Record::has_value) {
                return Poll::Ready(snapshot.events(&changes));
            }
            self.reading = Some(tokio::task::spawn_blocking(move || snapshot.events(&changes)));
        }
        let Some(reading) = &mut self.reading else {
            return Poll::Ready(Ok(Vec::new()));
        };
        let read = std::task::ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        Poll::Ready(read.unwrap_or(Err(Error::Closed)))
    }

    /// Takes the next changes.
    fn take(&mut self) -> Vec<Change> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while changes.len() < MAX_READ && bytes < MAX_READ_BYTES {
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
                        self.snapshot = ReadSnapshot::default();
                    }
                }
            }
        }
        self.chunks.front()?.get(self.at)
    }
}

impl Batch {
    /// Takes the next event above a revision.
    fn next(&mut self, after: u64) -> Option<Next> {
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
