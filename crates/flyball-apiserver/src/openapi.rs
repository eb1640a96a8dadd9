//! OpenAPI v3: one document per group and version, made from the table of kinds and from the schemas of custom resources.
//! Built-in types have no descriptions: the table of kinds carries none. A custom resource keeps those of its author.

mod operation;
mod paths;
mod schema;
pub mod swagger;

use crate::clock::Clock;
use crate::encoding::document::{self, Document};
use crate::encoding::negotiate;
use crate::nonresource::Request;
use crate::registry::{Group, Kind, Served, Version};
use crate::{Body, version};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// The document of one version; its hash is computed without building it.
pub(crate) struct OpenApi {
    hash: String,
    document: OnceLock<Document>,
}

/// The documents of versions with built-in kinds only, shared by all servers of a process.
static BUILT_IN: LazyLock<Mutex<BTreeMap<String, Arc<OpenApi>>>> = LazyLock::new(Mutex::default);

/// Handles `/openapi/v3` and the paths below it.
pub(crate) fn respond(served: &Served, path: &[&str], request: &Request<'_>) -> Response<Body> {
    let (group, version) = match path {
        [] => return index(served),
        ["api", version] => ("", version),
        ["apis", group, version] => (*group, version),
        _ => return bare(StatusCode::NOT_FOUND),
    };
    let Some((group, version)) = served.group(group).and_then(|group| Some((group, group.version(version)?))) else {
        return bare(StatusCode::NOT_FOUND);
    };
    match json_is_accepted(request.headers) {
        false => bare(StatusCode::NOT_ACCEPTABLE),
        true => one(
            &key(&group.name, &version.name),
            open_api(group, version).document(group, version),
            request,
        ),
    }
}

impl OpenApi {
    fn document(&self, group: &Group, version: &Version) -> &Document {
        self.document
            .get_or_init(|| Document::identified(describe(group, version).to_string(), self.hash.clone()))
    }
}

/// The document of a version, built or not.
fn open_api<'a>(group: &Group, version: &'a Version) -> &'a OpenApi {
    version.open_api.get_or_init(|| {
        let key = key(&group.name, &version.name);
        if version.kinds.iter().any(|kind| kind.custom.is_some()) {
            let hash = document::hash(identity(&key, version).as_bytes());
            return Arc::new(OpenApi { hash, document: OnceLock::new() });
        }
        let mut built_in = BUILT_IN.lock().expect("no panic while held");
        let new = || {
            let document = Document::new(&describe(group, version));
            let hash = document.hash().to_owned();
            Arc::new(OpenApi { hash, document: document.into() })
        };
        built_in.entry(key).or_insert_with(new).clone()
    })
}

/// The input of the document of a version with custom resources, for its hash.
fn identity(key: &str, version: &Version) -> String {
    let mut identity = format!("{} {key}", version::git_version());
    let mut add = |kind: &Arc<Kind>| {
        let names = (&kind.resource.kind, &kind.resource.list_kind, &kind.resource.plural);
        let definition = kind.custom.as_ref().map(|custom| (&custom.uid, custom.generation));
        write!(identity, " {names:?} {definition:?}").expect("a string takes every write");
    };
    version.kinds.iter().for_each(&mut add);
    identity
}

/// `api/v1`, or `apis/apps/v1`.
fn key(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        _ => format!("apis/{group}/{version}"),
    }
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

fn index(served: &Served) -> Response<Body> {
    let mut paths = Map::new();
    for group in served.groups() {
        for version in &group.versions {
            let key = key(&group.name, &version.name);
            let hash = &open_api(group, version).hash;
            let url = json!({"serverRelativeURL": format!("/openapi/v3/{key}?hash={hash}")});
            paths.insert(key, url);
        }
    }
    let mut response = Response::new(Body::whole(json!({"paths": paths}).to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A document requested by its hash may be cached for ever; another hash is redirected to the current one.
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
