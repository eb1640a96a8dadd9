//! Pagination of lists: the revision that a list is read at, and the continue token.

use crate::request::context::ResourceRequest;
use crate::request::options::list::resource_version;
use crate::request::options::{ListOptions, ResourceVersionMatch};
use crate::status::{Result, Status};
use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use flyball_schema::decode::{DecodeError, Document};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a read waits for a revision that the store has not reached.
// apiserver/pkg/storage/cacher/watch_cache.go, blockTimeout
const MAX_WAIT: Duration = Duration::from_secs(3);

/// The first key of a list, and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The revision; the latest if none.
    pub revision: Option<u64>,
    /// The first key; the first of all if none.
    pub start: Option<Bytes>,
    /// Whether the client continues a list.
    pub continued: bool,
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl Page {
    /// Reads the position of a list from its options; waits until the store has reached the requested revision.
    pub async fn read(request: &ResourceRequest, options: &ListOptions, prefix: &[u8]) -> Result<Page> {
        if let Some(token) = &options.continue_ {
            return Page::continued(options, token, prefix);
        }
        let wanted = resource_version(options.resource_version.as_deref())?;
        let exact = match options.resource_version_match {
            Some(how) => how == ResourceVersionMatch::Exact,
            None => options.limit > 0,
        };
        let Some(wanted) = wanted.filter(|wanted| *wanted > 0) else {
            return Ok(Page { revision: None, start: None, continued: false });
        };
        wait_for(request, wanted).await?;
        Ok(Page {
            revision: exact.then_some(wanted),
            start: None,
            continued: false,
        })
    }

    // apiserver/pkg/storage/continue.go, DecodeContinue
    fn continued(options: &ListOptions, token: &str, prefix: &[u8]) -> Result<Page> {
        let invalid = |why: String| Status::bad_request(format!("invalid continue token: {why}"));
        let not_valid = |why: &str| invalid(format!("continue key is not valid: {why}"));
        let decoded = URL_SAFE_NO_PAD.decode(token).or_else(|_| URL_SAFE.decode(token));
        let decoded = decoded.map_err(|error| not_valid(&error.to_string()))?;
        let token = Document::json(&decoded).and_then(Document::untyped).map_err(|error| match error {
            DecodeError::Json(why) | DecodeError::Yaml(why) | DecodeError::Type(why) => not_valid(&why),
        })?;
        let token: Token = serde_json::from_value(token.value).map_err(|error| not_valid(&error.to_string()))?;
        if token.v != "meta.k8s.io/v1" {
            return Err(not_valid(&format!("server does not recognize this encoded version {:?}", token.v)));
        }
        if token.start.is_empty() || token.start.contains("/../") {
            return Err(not_valid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        if token.rv == 0 {
            return Err(not_valid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
        }
        if options.resource_version.as_deref().is_some_and(|version| version != "0") {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(why));
        }
        let start = Bytes::from([prefix, token.start.as_bytes()].concat());
        Ok(Page {
            revision: u64::try_from(token.rv).ok(),
            start: Some(start),
            continued: true,
        })
    }
}

/// The token that continues a list after a key; a revision of -1 stands for the latest one at that time.
pub(crate) fn token(revision: i64, last: &[u8], prefix: &[u8]) -> String {
    let start = String::from_utf8_lossy(&last[prefix.len()..]).into_owned() + "\0";
    let token = Token { v: "meta.k8s.io/v1".to_owned(), rv: revision, start };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).expect("a token is plain JSON"))
}

/// Waits at most [`MAX_WAIT`] until the store has reached a revision.
pub(crate) async fn wait_for(request: &ResourceRequest, revision: u64) -> Result<()> {
    let store = request.store();
    if revision <= store.revision() {
        return Ok(());
    }
    match tokio::time::timeout(MAX_WAIT, store.reached(revision)).await {
        Ok(()) => Ok(()),
        Err(_) => Err(Status::resource_version_too_large(revision, store.revision())),
    }
}
