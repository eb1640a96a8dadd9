//! The state with which a watch begins: one ADDED event per object, read page by page at one revision.

use crate::endpoints::filter::Filter;
use crate::endpoints::page;
use crate::registry::Kind;
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::response::{Change, WatchEvent};
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_store::{Error, Range, Store};
use serde_json::json;
use std::vec::IntoIter;

/// How many objects are read together, and so held for a client that reads slowly.
const PAGE: usize = 1_000;

/// The objects that a watch has not sent yet.
pub(super) struct Initial {
    store: Store,
    prefix: Bytes,
    /// The revision of the state; changes follow after it.
    pub revision: u64,
    objects: IntoIter<Bytes>,
    /// Where the next page begins; none after the last one.
    next: Option<Bytes>,
    has_bookmark: bool,
}

impl Initial {
    /// Reads the first page, at a revision or later.
    pub async fn read(request: &ResourceRequest, options: &ListOptions, at_least: u64) -> Result<Initial> {
        page::wait_for(request, at_least).await?;
        let mut initial = Initial {
            store: request.store().clone(),
            prefix: request.kind.prefix(request.namespace()),
            revision: 0,
            objects: Vec::new().into_iter(),
            next: None,
            has_bookmark: options.allow_watch_bookmarks,
        };
        initial.read_page(&request.kind, None).await?;
        Ok(initial)
    }

    async fn read_page(&mut self, kind: &Kind, start: Option<Bytes>) -> Result<()> {
        let range = Range {
            prefix: self.prefix.clone(),
            limit: Some(PAGE),
            revision: start.is_some().then_some(self.revision),
            start,
        };
        let page = self.store.range(range).await.map_err(failed)?;
        self.revision = page.revision;
        let last = page.entries.last().filter(|_| page.more);
        self.next = last.map(|last| [&last.key, &b"\0"[..]].concat().into());
        self.objects = kind.convert_entries(&page.entries).await?.into_iter();
        Ok(())
    }

    /// The next object that the filter selects, then the bookmark that ends the state, if the client wants it.
    pub async fn next(&mut self, kind: &Kind, filter: &Filter) -> Result<Option<WatchEvent>> {
        loop {
            for object in self.objects.by_ref() {
                if filter.selects(kind, || object.clone()) {
                    return Ok(Some(WatchEvent::new(Change::Added, object)));
                }
            }
            match self.next.take() {
                Some(start) => self.read_page(kind, Some(start)).await?,
                None if std::mem::take(&mut self.has_bookmark) => {
                    let annotations = json!({"annotations": {"k8s.io/initial-events-end": "true"}});
                    return Ok(Some(super::bookmark(kind, self.revision, annotations)));
                }
                None => return Ok(None),
            }
        }
    }
}

/// The refusal of a page that cannot be read: clients have to begin anew if its revision is compacted.
fn failed(error: Error) -> Status {
    match error {
        Error::Compacted { requested, oldest } => super::expired_status(requested, oldest),
        error => Status::store_failed(error),
    }
}
