//! What a line of a watch says, and what a refusal does.

use crate::cache::object::Object;
use crate::cache::watch::WatchError;
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, time::Duration};

/// One line of a watch.
pub(crate) enum Event {
    Put(Object),
    Deleted(Object),
    Bookmark(ListMeta),
    /// An empty line, by which some proxies keep a connection alive.
    Nothing,
    /// The version to watch from is too old.
    Expired,
    Failed(String),
}

/// The metadata of a list, or of a bookmark's object: nothing but a version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMeta {
    #[serde(default)]
    pub(crate) resource_version: String,
    #[serde(rename = "continue", default)]
    pub(crate) next: String,
    #[serde(default)]
    annotations: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: ListMeta,
}

impl ListMeta {
    /// Whether all that was there has been told (KEP-3157).
    pub(crate) fn ends_initial_events(&self) -> bool {
        self.annotations.get("k8s.io/initial-events-end").is_some_and(|ends| ends == "true")
    }
}

impl Event {
    pub(crate) fn parse(line: &str) -> Result<Event, WatchError> {
        // As every API server writes it: what is inside is then read once, not twice.
        for (begin, put) in [
            (r#"{"type":"ADDED","object":"#, true),
            (r#"{"type":"MODIFIED","object":"#, true),
            (r#"{"type":"DELETED","object":"#, false),
        ] {
            if let Some(object) = line.strip_prefix(begin).and_then(|rest| rest.strip_suffix('}')) {
                let object = Object::parse(object)?;
                return Ok(if put {
                    Event::Put(object)
                } else {
                    Event::Deleted(object)
                });
            }
        }
        if line.trim().is_empty() {
            return Ok(Event::Nothing);
        }
        let Line { event, object } = serde_json::from_str(line)?;
        Ok(match event.as_ref() {
            "ADDED" | "MODIFIED" => Event::Put(Object::parse(object.get())?),
            "DELETED" => Event::Deleted(Object::parse(object.get())?),
            "BOOKMARK" => Event::Bookmark(serde_json::from_str::<Bookmark>(object.get())?.metadata),
            _ => match serde_json::from_str::<kube::core::Status>(object.get()) {
                Ok(status) if status.code == 410 => Event::Expired,
                Ok(status) => Event::Failed(status.message),
                Err(_) => Event::Failed(object.get().into()),
            },
        })
    }
}

pub(crate) fn text(bytes: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(bytes).map_err(serde_json::Error::custom)
}

/// What the server said instead of a list or watch.
pub(crate) fn refused(head: &http::response::Parts, body: &[u8]) -> WatchError {
    let status: Option<kube::core::Status> = serde_json::from_slice(body).ok();
    let message = status.as_ref().map(|status| status.message.clone()).filter(|message| !message.is_empty());
    let message = message.unwrap_or_else(|| format!("the server answered {}", head.status));
    let header = head.headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let header = header.and_then(|seconds| seconds.trim().parse().ok());
    let details = status.and_then(|status| status.details).map(|details| details.retry_after_seconds.into());
    let retry_after = Duration::from_secs(header.or(details).unwrap_or(0));
    WatchError::Refused { code: head.status, message, retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whichever_way_it_is_written() {
        for line in [
            r#"{"type":"ADDED","object":{"metadata":{"name":"ada"}}}"#,
            r#"{ "type" : "ADDED", "object" : {"metadata":{"name":"ada"}} }"#,
            r#"{"object":{"metadata":{"name":"ada"}},"type":"MODIFIED"}"#,
        ] {
            assert!(
                matches!(Event::parse(line), Ok(Event::Put(object)) if object.key.name() == "ada"),
                "{line}"
            );
        }
        assert!(matches!(Event::parse(""), Ok(Event::Nothing)));
        assert!(Event::parse(r#"{"type":"ADDED","object":{"metadata":{"name":"ada"}}"#).is_err());
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let (head, ()) = http::Response::builder()
            .status(429)
            .header("Retry-After", "7")
            .body(())
            .unwrap()
            .into_parts();
        let refused = refused(&head, b"slow down");
        assert_eq!(refused.retry_after(), Duration::from_secs(7));
        assert_eq!(refused.to_string(), "the server answered 429 Too Many Requests");
    }
}
