//! The client that an operator works with. It watches its own writes: what the API server answers goes into the cache at once,
//! so that a read which follows is never older, by whichever way the write was made.

use crate::{
    Key,
    cache::{Cache, Mirror},
    kind::KindId,
    object::Object,
};
use bytes::Bytes;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};

/// A client that puts what it writes into `cache`.
///
/// Not seen are writes whose answer is not the object: `scale`, `eviction`, `binding`. Dry runs are no writes.
pub(crate) fn observed(client: Client, cache: Cache) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, cache) = (client.clone(), cache.clone());
        async move {
            let Some(write) = Write::read(&request) else {
                return client.send(request).await;
            };
            let response = client.send(request).await?;
            let mirrors = cache.mirrors_of(&write.kind);
            if !response.status().is_success() || mirrors.is_empty() {
                return Ok(response);
            }
            let (head, body) = response.into_parts();
            let body = body.collect_bytes().await?;
            write.record(&mirrors, &body);
            Ok::<_, kube::Error>(Response::from_parts(head, Body::from(body)))
        }
    });
    Client::new(service, namespace)
}

/// A write as its request tells of it.
#[derive(Debug, PartialEq, Eq)]
struct Write {
    kind: KindId,
    /// Whether one object is deleted, and which.
    deletes: Option<Key>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    details: Option<Details<'a>>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
}

impl Write {
    fn read<B>(request: &Request<B>) -> Option<Write> {
        let writes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(request.method());
        let dry = request.uri().query().is_some_and(|query| query.contains("dryRun="));
        if !writes || dry {
            return None;
        }
        let segments: Vec<_> = request.uri().path().split('/').filter(|segment| !segment.is_empty()).collect();
        let (api_version, rest) = match &*segments {
            ["api", version, rest @ ..] => (version.to_string(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status" | "finalize"]) => {
                (Some(*namespace), rest)
            }
            rest => (None, rest),
        };
        let [plural, rest @ ..] = rest else { return None };
        let deletes = match rest {
            [name] if request.method() == Method::DELETE => Some(Key::from(*name).in_namespace(namespace)),
            _ => None,
        };
        Some(Write {
            kind: KindId { api_version, plural: plural.to_string() },
            deletes,
        })
    }

    fn record(&self, mirrors: &[Arc<Mirror>], body: &Bytes) {
        let Ok(text) = std::str::from_utf8(body) else { return };
        let Ok(answer) = serde_json::from_str::<Answer<'_>>(text) else {
            return;
        };
        for mirror in mirrors {
            match (&answer, &self.deletes) {
                (Answer { kind, .. }, deletes) if kind == mirror.kind().name() => {
                    written(mirror, text, deletes.as_ref())
                }
                (Answer { details: Some(details), .. }, Some(key)) => mirror.removed(key, &details.uid),
                _ => answer.items.iter().flatten().for_each(|item| written(mirror, item.get(), None)),
            }
        }
    }
}

/// Takes an object that was answered to a write, or to the deletion of it.
fn written(mirror: &Mirror, json: &str, deletes: Option<&Key>) {
    match Object::parse(json) {
        Ok(object) if deletes.is_some() && object.meta().is_gone() => mirror.removed(&object.key, &object.uid),
        Ok(object) => mirror.written(object),
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: Method, uri: &str) -> Option<Write> {
        Write::read(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    fn kind(api_version: &str, plural: &str) -> KindId {
        KindId { api_version: api_version.into(), plural: plural.into() }
    }

    #[test]
    fn a_write_is_read_off_its_path() {
        let written = |method, uri| read(method, uri).unwrap().kind;
        assert_eq!(written(Method::POST, "/api/v1/namespaces/default/pods?x=y"), kind("v1", "pods"));
        assert_eq!(
            written(Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b/status"),
            kind("apps/v1", "deployments")
        );
        assert_eq!(written(Method::PUT, "/api/v1/namespaces/a"), kind("v1", "namespaces"));
        assert_eq!(written(Method::PUT, "/api/v1/namespaces/a/finalize"), kind("v1", "namespaces"));
        assert_eq!(read(Method::GET, "/api/v1/pods"), None);
        assert_eq!(read(Method::POST, "/api/v1/namespaces/default/pods?dryRun=All"), None);
    }

    #[test]
    fn a_delete_says_which_object() {
        let deletes = |uri| read(Method::DELETE, uri).unwrap().deletes;
        assert_eq!(deletes("/api/v1/namespaces/a/pods/b"), Some(Key::namespaced("a", "b")));
        assert_eq!(deletes("/api/v1/namespaces/a"), Some(Key::cluster("a")));
        assert_eq!(deletes("/api/v1/namespaces/a/pods"), None);
    }
}
