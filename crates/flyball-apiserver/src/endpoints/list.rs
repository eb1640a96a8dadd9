//! GET of many objects.

use crate::endpoints::filter::Filter;
use crate::endpoints::page::{self, Page};
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::response::{ApiResponse, List};
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_store::{Entry, Error, Range};

/// Answers with the objects that a request means, a page of them if it asks for that.
pub(crate) async fn list(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = ListOptions::list(&request.info.query)?;
    let filter = Filter::read(request, &options)?;
    let found = find(request, &options, &filter).await?;
    Ok(found.answer(request, &filter))
}

/// What a list found.
pub(crate) struct Found {
    pub entries: Vec<Entry>,
    /// The same objects in the version of the request.
    pub items: Vec<Bytes>,
    pub revision: u64,
    pub continue_: Option<String>,
    pub remaining: Option<u64>,
}

impl Found {
    /// The list of what was found.
    pub fn answer(self, request: &ResourceRequest, filter: &Filter) -> ApiResponse {
        ApiResponse::List(List {
            kind: request.kind.clone(),
            resource_version: self.revision,
            continue_: self.continue_,
            remaining_item_count: self.remaining.filter(|_| filter.is_empty()),
            items: self.items,
        })
    }
}

/// The most objects that are read together to find those that a selector matches.
// apiserver/pkg/storage/etcd3/store.go, maxLimit
const MAX_PAGE: usize = 10_000;

/// Finds the objects that a request means, all at one revision.
pub(crate) async fn find(request: &ResourceRequest, options: &ListOptions, filter: &Filter) -> Result<Found> {
    let prefix = request.kind.prefix(request.namespace());
    let mut page = Page::read(request, options, &prefix).await?;
    // The watch cache of a real server, which answers for version 0, knows no pages.
    let is_whole = options.resource_version.as_deref() == Some("0") && !page.continued;
    let limit = Some(options.limit).filter(|limit| *limit > 0 && !is_whole);
    let mut found = Found {
        entries: Vec::new(),
        items: Vec::new(),
        revision: 0,
        continue_: None,
        remaining: None,
    };
    let mut size = limit;
    loop {
        let range = Range {
            prefix: prefix.clone(),
            start: page.start.clone(),
            limit: size,
            revision: page.revision,
        };
        let read = match request.store().range(range).await {
            Ok(read) => read,
            Err(error) => return Err(refusal(request, error, &page, &prefix)),
        };
        found.revision = read.revision;
        page.revision = Some(read.revision);
        let (more, remaining) = (read.more, read.remaining);
        let converted = request.kind.convert_entries(&read.entries).await?;
        let mut entries = read.entries.into_iter().zip(converted);
        let mut last = None;
        while limit.is_none_or(|limit| found.entries.len() < limit) {
            let Some((entry, object)) = entries.next() else { break };
            last = Some(entry.key.clone());
            if filter.selects(&request.kind, || object.clone()) {
                found.entries.push(entry);
                found.items.push(object);
            }
        }
        let unread = entries.len() as u64 + remaining;
        let Some(last) = last.filter(|_| more || unread > 0) else {
            return Ok(found);
        };
        if limit.is_some_and(|limit| found.entries.len() >= limit) {
            let revision = i64::try_from(found.revision).unwrap_or(i64::MAX);
            found.continue_ = Some(page::token(revision, &last, &prefix));
            found.remaining = Some(unread);
            return Ok(found);
        }
        page.start = Some(after(&last));
        // Doubling keeps the number of reads logarithmic, however few objects match.
        size = size.map(|size| size.saturating_mul(2).min(MAX_PAGE));
    }
}

/// The first key after a key.
fn after(key: &[u8]) -> Bytes {
    [key, b"\0"].concat().into()
}

// apiserver/pkg/storage/etcd3/errors.go, interpretListError
fn refusal(request: &ResourceRequest, error: Error, page: &Page, prefix: &[u8]) -> Status {
    match error {
        Error::Compacted { .. } => match &page.start {
            Some(start) if page.continued => {
                let last = start.strip_suffix(b"\0").unwrap_or(start);
                Status::expired_continue(page::token(-1, last, prefix))
            }
            _ => Status::expired("The resourceVersion for the provided list is too old."),
        },
        Error::Future { requested, current } => Status::resource_version_too_large(requested, current),
        error => request.store_failed::<()>(error).expect_err("always a failure"),
    }
}
