//! Reads, and the bounds of etcd's history.

use super::{
    Remote,
    client::{Client, MAX_ATTEMPT_TIME, Retry},
    keys::Keys,
    wire::{CompactionRequest, Header, RangeRequest, RangeResponse, WatchAsk, WatchCreate, WatchRequest},
};
use crate::{Entry, Error, Page, Range, Result, Snapshot};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::sync::atomic::Ordering;
use tokio::time::timeout;
use tonic::{Code, Status};

const RANGE: &str = "/etcdserverpb.KV/Range";

/// The most entries that are requested from etcd at once.
const MAX_PAGE: usize = 10_000;

/// Asks for the latest revision.
pub(super) async fn latest(client: &Client, keys: &Keys) -> Result<u64> {
    let request = RangeRequest {
        key: keys.outer(b""),
        count_only: true,
        ..RangeRequest::default()
    };
    let answer: RangeResponse =
        client.call(RANGE, request, Retry::Always).await.map_err(|status| client.error(status))?;
    Ok(answer.header.map_or(0, |header| header.revision as u64))
}

impl Remote {
    pub(super) async fn read_one(&self, key: &[u8]) -> Result<Option<Entry>> {
        self.check_open()?;
        let request = RangeRequest { key: self.keys.outer(key), ..RangeRequest::default() };
        let answer = self.range_call(request).await.map_err(|status| self.client.error(status))?;
        answer
            .kvs
            .first()
            .map(|pair| self.keys.entry(pair).ok_or_else(|| self.corrupt(key)))
            .transpose()
    }

    /// Reads a range; a long one in pages, all at the revision of the first.
    pub(super) async fn read_many(&self, range: Range) -> Result<Page> {
        self.check_open()?;
        let limit = range.limit.unwrap_or(usize::MAX);
        let mut page = self.page(&range, range.from(), range.revision, limit).await?;
        while page.more && page.entries.len() < limit {
            let last = page.entries.last().expect("a page with more to come has a last entry");
            let from = [&last.key[..], b"\0"].concat();
            let rest = self.page(&range, &from, Some(page.revision), limit - page.entries.len()).await?;
            page.entries.extend(rest.entries);
            (page.more, page.remaining) = (rest.more, rest.remaining);
        }
        Ok(page)
    }

    /// Reads everything at the latest revision, page by page.
    pub(super) async fn read_all(&self) -> Result<Snapshot> {
        let first = self.page(&Range::default(), b"", None, MAX_PAGE).await?;
        let revision = first.revision;
        let state = (self.clone(), Some(first));
        let pages = stream::try_unfold(state, move |(remote, page)| async move {
            let Some(page) = page else { return Ok(None) };
            let next = match page.entries.last().filter(|_| page.more) {
                Some(last) => {
                    let from = [&last.key[..], b"\0"].concat();
                    Some(remote.page(&Range::default(), &from, Some(revision), MAX_PAGE).await?)
                }
                None => None,
            };
            let entries = stream::iter(page.entries.into_iter().map(Ok));
            Ok(Some((entries, (remote, next))))
        });
        Ok(Snapshot::new(revision, pages.try_flatten().boxed()))
    }

    async fn page(&self, range: &Range, from: &[u8], revision: Option<u64>, limit: usize) -> Result<Page> {
        // Nothing is at etcd's first revision, and 0 asks it for the latest.
        let at = revision.map_or(0, |revision| i64::try_from(revision.max(1)).unwrap_or(i64::MAX));
        if revision == Some(0) {
            self.check(0).await?;
        }
        let request = RangeRequest {
            key: self.keys.outer(from),
            range_end: self.keys.end(&range.prefix),
            limit: limit.min(MAX_PAGE) as i64,
            revision: at,
            keys_only: false,
            count_only: limit == 0,
        };
        if request.key >= request.range_end && request.range_end != "\0" {
            let revision = self.settled(revision).await?;
            return Ok(Page { entries: Vec::new(), revision, more: false, remaining: 0 });
        }
        let answer = match self.range_call(request).await {
            Ok(answer) => answer,
            Err(status) => return Err(self.refusal(revision.unwrap_or(0), status).await),
        };
        let revision = revision.unwrap_or_else(|| self.observe_revision(&answer.header));
        let entry = |pair| self.keys.entry(pair).ok_or_else(|| self.corrupt(&pair.key));
        let entries: Vec<Entry> = answer.kvs.iter().map(entry).collect::<Result<_>>()?;
        let remaining = (answer.count as u64).saturating_sub(entries.len() as u64);
        Ok(Page { entries, revision, more: remaining > 0, remaining })
    }

    /// The revision of a read that finds nothing wherever it is read.
    async fn settled(&self, revision: Option<u64>) -> Result<u64> {
        match revision {
            Some(revision) => self.check(revision).await.map(|()| revision),
            None => latest(&self.client, &self.keys).await,
        }
    }

    /// Refuses a revision that etcd has compacted, or that is yet to come.
    pub(super) async fn check(&self, revision: u64) -> Result<()> {
        let oldest = self.compacted.load(Ordering::Relaxed);
        if revision < oldest {
            return Err(Error::Compacted { requested: revision, oldest: self.oldest(revision).await? });
        }
        match self.probe(revision).await {
            Ok(_) => Ok(()),
            Err(status) => Err(self.refusal(revision, status).await),
        }
    }

    async fn probe(&self, revision: u64) -> Result<RangeResponse, Status> {
        let request = RangeRequest {
            key: self.keys.outer(b""),
            revision: i64::try_from(revision.max(1)).unwrap_or(i64::MAX),
            count_only: true,
            ..RangeRequest::default()
        };
        self.range_call(request).await
    }

    async fn range_call(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        let answer: RangeResponse = self.client.call(RANGE, request, Retry::Always).await?;
        self.observe_revision(&answer.header);
        Ok(answer)
    }

    pub(super) async fn compact_at(&self, revision: u64) -> Result<()> {
        self.check_open()?;
        let request = CompactionRequest { revision: i64::try_from(revision).unwrap_or(i64::MAX) };
        let oldest = self.compacted.load(Ordering::Relaxed);
        if revision == oldest {
            return self.check(revision).await;
        }
        let done = self.client.call("/etcdserverpb.KV/Compact", request, Retry::Always).await;
        match done {
            Ok(()) => {}
            // Asked a second time, or by another server too.
            Err(status) if is_compacted(&status) && self.oldest(revision).await? == revision => {}
            Err(status) => return Err(self.refusal(revision, status).await),
        }
        self.compacted.fetch_max(revision, Ordering::Relaxed);
        Ok(())
    }

    /// What a refused revision means to a caller.
    async fn refusal(&self, requested: u64, status: Status) -> Error {
        let error = if is_compacted(&status) {
            self.oldest(requested).await.map(|oldest| Error::Compacted { requested, oldest })
        } else if is_future(&status) {
            let current = latest(&self.client, &self.keys).await;
            current.map(|current| Error::Future { requested, current })
        } else {
            return self.client.error(status);
        };
        error.unwrap_or_else(|error| error)
    }

    /// The oldest revision in etcd's history, where `compacted` is one that is not.
    async fn oldest(&self, compacted: u64) -> Result<u64> {
        let known = self.compacted.load(Ordering::Relaxed);
        if known > compacted && self.probe(known).await.is_ok() {
            return Ok(known);
        }
        let mut oldest = self.requested_oldest().await;
        if let Err(status) = &oldest {
            self.client.recover(status).await;
            oldest = self.requested_oldest().await;
        }
        let oldest = oldest.map_err(|status| self.client.error(status))?;
        self.compacted.fetch_max(oldest, Ordering::Relaxed);
        Ok(oldest)
    }

    /// Requests the oldest revision; only the refusal of a watch names it.
    async fn requested_oldest(&self) -> Result<u64, Status> {
        let create = WatchCreate {
            key: self.keys.outer(b""),
            start_revision: 1,
            ..WatchCreate::default()
        };
        let asked = WatchRequest { ask: Some(WatchAsk::Create(create)) };
        let requests = stream::iter([asked]).chain(stream::pending());
        let oldest = async {
            let mut answers = self.client.watch(self.client.current(), requests).await?;
            while let Some(answer) = answers.message().await? {
                if answer.compact_revision > 0 {
                    return Ok(answer.compact_revision as u64);
                }
                if answer.canceled {
                    return Err(Status::unavailable(answer.cancel_reason));
                }
            }
            Err(Status::unavailable("the watch ended"))
        };
        // A member that lags behind may not have compacted yet, and sends events instead.
        timeout(MAX_ATTEMPT_TIME, oldest)
            .await
            .unwrap_or_else(|_| Err(Status::unavailable("nothing is compacted yet")))
    }

    /// Notes the revision that an answer names, and returns it.
    pub(super) fn observe_revision(&self, header: &Option<Header>) -> u64 {
        let revision = header.as_ref().map_or(0, |header| header.revision as u64);
        self.observe(revision);
        revision
    }

    pub(super) fn corrupt(&self, key: &[u8]) -> Error {
        let key = String::from_utf8_lossy(key);
        let place = self.client.name.clone();
        Error::Refused { place, reason: format!("{key} is not as a store writes it") }
    }
}

// etcd, api/v3rpc/rpctypes/error.go: ErrGRPCCompacted, ErrGRPCFutureRev
fn is_compacted(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("has been compacted")
}

fn is_future(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().contains("is a future revision")
}
