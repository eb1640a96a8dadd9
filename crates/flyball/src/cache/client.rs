//! The client that an operator works with. It watches its own writes: what the API server answers goes into the cache at once,
//! so that a read which follows is never older, by whichever way the write was made.

mod reread;

use crate::Key;
use crate::cache::kind::KindId;
use crate::cache::object::Object;
use crate::cache::{Cache, Mirror};
use crate::metrics::MeasuredClient;
use bytes::Bytes;
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use reread::Reread;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};

/// A client that puts what it writes into the cache.
///
/// Where the answer is not the object (`scale`, `eviction`, `binding`, the deletion of a collection, another version of the
/// kind), the object is read before the answer is handed on; where that fails, the write is answered with that failure. A write
/// whose answer is lost tells nothing, and dry runs are no writes.
#[derive(Clone)]
pub(crate) struct ObservedClient {
    client: MeasuredClient,
    cache: Cache,
}

impl ObservedClient {
    pub(crate) fn new(client: MeasuredClient, cache: Cache) -> ObservedClient {
        ObservedClient { client, cache }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        let Some(mut write) = Write::read(&request) else {
            return self.client.send(request).await;
        };
        let request = write.complete(request).await?;
        let response = self.client.send(request).await?;
        let mirrors = self.cache.mirrors_of_any_version(&write.kind);
        if !response.status().is_success() || mirrors.is_empty() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = body.collect_bytes().await?;
        if let Some(reread) = write.record(&mirrors, &body) {
            reread.run(&self.client).await?;
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// The default namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.client.namespace()
    }

    /// The same as kube's own type, which puts one more task between caller and server.
    pub(crate) fn to_client(&self) -> Client {
        let send = |this: Arc<ObservedClient>, request| async move { this.send(request).await };
        as_client(Arc::new(self.clone()), self.namespace(), send)
    }
}

/// What sends requests, as kube's own type.
pub(crate) fn as_client<C, F>(sender: Arc<C>, namespace: &str, send: fn(Arc<C>, Request<Body>) -> F) -> Client
where
    C: Send + Sync + 'static,
    F: Future<Output = kube::Result<Response<Body>>> + Send + 'static,
{
    let service = tower::service_fn(move |request: Request<Body>| send(sender.clone(), request));
    Client::new(service, namespace)
}

/// A write as its request tells of it.
#[derive(Debug, PartialEq, Eq)]
struct Write {
    kind: KindId,
    namespace: Option<String>,
    /// The object, unless it is created, or a whole collection is meant.
    name: Option<String>,
    subresource: Option<String>,
    deletes: bool,
    /// Which objects of a collection are meant.
    query: String,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<Named<'a>>,
    #[serde(borrow)]
    details: Option<Details<'a>>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
}

/// Subresources whose writes do not change the object.
const UNRELATED_SUBRESOURCES: [&str; 2] = ["token", "proxy"];

impl Write {
    fn read<B>(request: &Request<B>) -> Option<Write> {
        let writes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(request.method());
        let query = request.uri().query().unwrap_or_default();
        if !writes || query.contains("dryRun=") {
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
                (Some(namespace.to_string()), rest)
            }
            rest => (None, rest),
        };
        let [plural, rest @ ..] = rest else { return None };
        let deletes = request.method() == Method::DELETE;
        Some(Write {
            kind: KindId { api_version, plural: plural.to_string() },
            namespace,
            name: rest.first().map(|name| name.to_string()),
            subresource: rest.get(1).map(|subresource| subresource.to_string()),
            query: if deletes { query.to_owned() } else { String::new() },
            deletes,
        })
    }

    /// Finds out what only the body says: which pod is bound by a Binding that is posted beside the pods.
    async fn complete(&mut self, request: Request<Body>) -> kube::Result<Request<Body>> {
        if self.kind.plural != "bindings" || self.kind.api_version != "v1" {
            return Ok(request);
        }
        #[derive(Deserialize)]
        struct Binding<'a> {
            #[serde(borrow)]
            metadata: Named<'a>,
        }
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        if let Ok(binding) = serde_json::from_slice::<Binding<'_>>(&body) {
            self.kind.plural = "pods".into();
            self.name = Some(binding.metadata.name.into_owned());
            self.subresource = Some("binding".into());
        }
        Ok(Request::from_parts(head, Body::from(body)))
    }

    fn key(&self, answer: &Answer<'_>) -> Option<Key> {
        let answered = || answer.metadata.as_ref().map(|metadata| metadata.name.as_ref());
        let name = self.name.as_deref().or_else(answered).filter(|name| !name.is_empty())?;
        Some(Key::from(name).in_namespace(self.namespace.as_deref()))
    }

    /// Takes what the answer tells, and says what has to be read since it does not tell it.
    fn record(&self, mirrors: &[Arc<Mirror>], body: &Bytes) -> Option<Reread> {
        let text = std::str::from_utf8(body).ok()?;
        let answer = serde_json::from_str::<Answer<'_>>(text).ok()?;
        let (same, others): (Vec<_>, Vec<_>) =
            mirrors.iter().cloned().partition(|mirror| mirror.kind().id() == self.kind);
        let told = same.first().is_some_and(|mirror| answer.kind == mirror.kind().name());
        let key = self.key(&answer);
        match (&key, &answer.details) {
            (None, _) if self.deletes => return Some(self.collection(mirrors, &answer)),
            (Some(key), Some(details)) if self.deletes && !details.uid.is_empty() => {
                mirrors.iter().for_each(|mirror| mirror.removed(key, &details.uid));
                return None;
            }
            _ if told => same.iter().for_each(|mirror| written(mirror, text)),
            _ => {}
        }
        let apart = self
            .subresource
            .as_deref()
            .is_some_and(|subresource| UNRELATED_SUBRESOURCES.contains(&subresource));
        let untold = if told { others } else { mirrors.to_vec() };
        (!apart && !untold.is_empty()).then(|| Reread::object(untold, key?)).flatten()
    }

    fn collection(&self, mirrors: &[Arc<Mirror>], answer: &Answer<'_>) -> Reread {
        let deleted = answer.items.as_ref().map(|items| {
            let objects = items.iter().filter_map(|item| Object::parse(item.get()).ok());
            objects.map(|object| (object.key, object.uid)).collect()
        });
        Reread::collection(mirrors.to_vec(), self.namespace.clone(), &self.query, deleted)
    }
}

/// Takes an object that was answered to a write. One that is being deleted and that nothing holds any more is gone, and has the
/// version that it had before (`registry/generic/registry/store.go`, `deleteWithoutFinalizers`).
fn written(mirror: &Mirror, json: &str) {
    match Object::parse(json) {
        Ok(object) if object.terminating && object.json().meta().is_gone() => {
            mirror.removed(&object.key, &object.uid);
        }
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
    fn a_write_says_which_object_and_which_part_of_it() {
        let said = |method, uri| {
            let write = read(method, uri).unwrap();
            (write.namespace, write.name, write.subresource)
        };
        let some = |text: &str| Some(text.to_owned());
        let of_pod = (some("a"), some("b"), None);
        assert_eq!(said(Method::DELETE, "/api/v1/namespaces/a/pods/b"), of_pod);
        assert_eq!(
            said(Method::POST, "/api/v1/namespaces/a/pods/b/eviction"),
            (some("a"), some("b"), some("eviction"))
        );
        assert_eq!(said(Method::DELETE, "/api/v1/namespaces/a"), (None, some("a"), None));
        assert_eq!(said(Method::DELETE, "/api/v1/namespaces/a/pods"), (some("a"), None, None));
    }
}
