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
    pub revision: u64,
    pub continue_: Option<String>,
    pub remaining: Option<u64>,
}

impl Found {
    /// The list of what was found.
    pub fn answer(self, request: &ResourceRequest, filter: &Filter) -> ApiResponse {
        let present = |entry: &Entry| request.kind.present(&entry.value, entry.revision);
        ApiResponse::List(List {
            kind: request.kind.clone(),
            resource_version: self.revision,
            continue_: self.continue_,
            remaining_item_count: self.remaining.filter(|_| filter.is_empty()),
            items: self.entries.iter().map(present).collect(),
        })
    }
}

/// Finds the objects that a request means.
pub(crate) async fn find(request: &ResourceRequest, options: &ListOptions, filter: &Filter) -> Result<Found> {
    let prefix = request.kind.prefix(request.namespace());
    let mut page = Page::read(request, options, &prefix).await?;
    // The watch cache, which answers for version 0, knows no pages.
    let limit = if options.resource_version.as_deref() == Some("0") && !page.continued {
        0
    } else {
        options.limit
    };
    let mut found = Found {
        entries: Vec::new(),
        revision: 0,
        continue_: None,
        remaining: None,
    };
    loop {
        let wanted = (limit > 0).then(|| limit - found.entries.len());
        let range = Range {
            prefix: prefix.clone(),
            start: page.start.clone(),
            limit: wanted,
            revision: page.revision,
        };
        let read = match request.store().range(range).await {
            Ok(read) => read,
            Err(error) => return Err(refusal(request, error, &page, &prefix)),
        };
        found.revision = read.revision;
        page.revision = Some(read.revision);
        let last = read.entries.last().map(|entry| entry.key.clone());
        let meant = |entry: &Entry| filter.matches(&request.kind.present(&entry.value, entry.revision));
        found.entries.extend(read.entries.into_iter().filter(meant));
        let Some(last) = last.filter(|_| read.more) else {
            return Ok(found);
        };
        if found.entries.len() >= limit {
            let revision = i64::try_from(read.revision).unwrap_or(i64::MAX);
            found.continue_ = Some(page::token(revision, &last, &prefix));
            found.remaining = Some(read.remaining);
            return Ok(found);
        }
        page.start = Some(after(&last));
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
