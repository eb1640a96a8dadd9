//! OpenAPI v3: one document per group and version, made from the table of kinds and from the schemas of custom resources.
//! Built-in types have no descriptions: the table of kinds carries none. A custom resource keeps those of its author.

mod operation;
mod paths;
mod schema;
pub mod swagger;

use crate::clock::Clock;
use crate::discovery::{Group, Groups, Version};
use crate::encoding::document::Document;
use crate::encoding::negotiate;
use crate::nonresource::Request;
use crate::{Body, version};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// The documents of what is served at one moment, each made when it is first needed.
#[derive(Default)]
pub struct OpenApi(OnceLock<BTreeMap<String, Arc<Document>>>);

/// Documents of versions that have built-in kinds only: the same in every server of a process.
static BUILT_IN: LazyLock<Mutex<BTreeMap<String, Arc<Document>>>> = LazyLock::new(Mutex::default);

impl OpenApi {
    /// Answers `/openapi/v3` and what is below it.
    pub fn respond(&self, groups: &Groups, path: &[&str], request: &Request<'_>) -> Response<Body> {
        let documents = self.0.get_or_init(|| all(groups));
        if path.is_empty() {
            return index(documents);
        }
        let key = path.join("/");
        match documents.get(&key) {
            None => bare(StatusCode::NOT_FOUND),
            Some(_) if !json_is_accepted(request.headers) => bare(StatusCode::NOT_ACCEPTABLE),
            Some(document) => one(&key, document, request),
        }
    }
}

fn all(groups: &Groups) -> BTreeMap<String, Arc<Document>> {
    let documents = groups.versions().map(|(group, version)| {
        let key = key(&group.name, &version.name);
        let document = document(&key, group, version);
        (key, document)
    });
    documents.collect()
}

/// `api/v1`, or `apis/apps/v1`.
fn key(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        _ => format!("apis/{group}/{version}"),
    }
}

fn document(key: &str, group: &Group, version: &Version) -> Arc<Document> {
    if version.kinds.iter().any(|kind| kind.custom.is_some()) {
        return Arc::new(Document::new(&describe(group, version)));
    }
    let mut built_in = BUILT_IN.lock().expect("no panic while held");
    let new = || Arc::new(Document::new(&describe(group, version)));
    built_in.entry(key.to_owned()).or_insert_with(new).clone()
}

/// The whole document of one version.
fn describe(group: &Group, version: &Version) -> Value {
    let mut components = schema::Components::new(&group.name, &version.name);
    let mut paths = paths::Paths::new(format!("/{}", key(&group.name, &version.name)), &mut components);
    if let Some(kind) = version.kinds.iter().find(|kind| kind.custom.is_none()) {
        paths.discovery(kind);
    }
    for kind in &version.kinds {
        paths.add(kind);
    }
    let paths = paths.finish();
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version::major_minor()},
        "paths": paths,
        "components": {"schemas": components.finish()}
    })
}

fn index(documents: &BTreeMap<String, Arc<Document>>) -> Response<Body> {
    let entry = |(key, document): (&String, &Arc<Document>)| {
        (
            key.clone(),
            json!({"serverRelativeURL": format!("/openapi/v3/{key}?hash={}", document.hash())}),
        )
    };
    let paths: Map<String, Value> = documents.iter().map(entry).collect();
    let mut response = Response::new(Body::whole(json!({"paths": paths}).to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A document under the right hash may be kept for ever; under a wrong one, the client is sent to the right one.
fn one(key: &str, document: &Document, request: &Request<'_>) -> Response<Body> {
    match request.query.get("hash") {
        None => document.json(request.headers, "application/json"),
        Some(hash) if hash == document.hash() => {
            let mut response = document.json(request.headers, "application/json");
            let headers = response.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            headers.insert(EXPIRES, in_a_year(request.clock));
            response
        }
        Some(_) => {
            let hash = document.hash();
            let mut response = bare(StatusCode::MOVED_PERMANENTLY);
            let location = format!("/openapi/v3/{key}?hash={hash}");
            let headers = response.headers_mut();
            headers.insert(LOCATION, HeaderValue::try_from(location).expect("names and digits"));
            headers.insert(ETAG, HeaderValue::try_from(format!("\"{hash}\"")).expect("digits in quotes"));
            headers.insert(VARY, HeaderValue::from_static("Accept"));
            response
        }
    }
}

fn in_a_year(clock: &Clock) -> HeaderValue {
    let time = clock.now() + jiff::SignedDuration::from_hours(365 * 24);
    HeaderValue::try_from(time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()).expect("a date is a header value")
}

fn json_is_accepted(headers: &HeaderMap) -> bool {
    let mut clauses = negotiate::accept(headers).into_iter();
    !headers.contains_key(ACCEPT) || clauses.any(|clause| clause.admits("application", "json"))
}

fn bare(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
