//! Paths that name no resource: discovery, OpenAPI, health and the version.

use crate::authn::token::ISSUER;
use crate::clock::Clock;
use crate::encoding::document::Document;
use crate::encoding::negotiate::{self, Format};
use crate::encoding::output;
use crate::openapi;
use crate::registry::Served;
use crate::request::context::RequestContext;
use crate::request::info::{Query, ResourceInfo};
use crate::status::Status;
use crate::{Body, health, version};
use flyball_schema::kinds;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

/// Handles a request to a path that names no resource.
pub(crate) async fn respond(context: &RequestContext, served: &Served, head: &http::request::Parts) -> Response<Body> {
    let RequestContext { server, info, .. } = context;
    let clock = server.clock();
    let path = info.path.strip_prefix('/').unwrap_or_default().trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let request = Request {
        headers: &head.headers,
        query: &info.query,
        method: &info.method,
        clock: &clock,
    };
    match parts[..] {
        [""] if info.path == "/" => output::value(PRETTY, &paths(served)),
        ["version"] => request.get(|request| request.version()),
        ["version", ..] => request.refuse(&Status::no_such_path()),
        ["healthz" | "livez" | "readyz", ..] => {
            let shutting_down = head.extensions.get::<health::ShuttingDown>().is_some();
            let state = health::State { store: server.store(), shutting_down };
            health::respond(&info.path, &info.query, &state).await
        }
        [".well-known", "openid-configuration"] => request.get(|request| request.openid_configuration()),
        ["openid", "v1", "jwks"] => request.get(|_| openid("application/jwk-set+json", &server.token_keys().jwks())),
        ["api"] => request.get(|request| request.routed(|| request.core(served))),
        ["apis"] => request.named(served),
        ["api", version] => request.versioned(served, "", version),
        ["apis", group] => request.group(served, group),
        ["apis", group, version] => request.versioned(served, group, version),
        ["openapi", "v3"] if info.path.ends_with('/') => no_such_document(),
        ["openapi", "v2"] if info.path.ends_with('/') => no_such_page(),
        ["openapi", "v3", ref rest @ ..] => openapi::respond(served, rest, &request),
        ["openapi", "v2"] => openapi::swagger::respond(request.headers),
        _ => no_such_page(),
    }
}

/// 404 for a resource that is not served: a Status in built-in groups, plain text in others.
pub fn not_found(headers: &HeaderMap, query: &Query, target: &ResourceInfo) -> Response<Body> {
    missing(headers, query, &target.group)
}

fn missing(headers: &HeaderMap, query: &Query, group: &str) -> Response<Body> {
    match kinds::builtin().resources.iter().any(|resource| &*resource.group == group) {
        true => output::refuse(headers, query, &Status::no_such_path()),
        false => no_such_page(),
    }
}

fn no_such_page() -> Response<Body> {
    output::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// 404 as the handler of OpenAPI answers it: without a body.
fn no_such_document() -> Response<Body> {
    let mut response = Response::new(Body::whole(Vec::new()));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// A document of the issuer of service account tokens, which caches may keep for an hour.
fn openid(media_type: &'static str, document: &Value) -> Response<Body> {
    let mut response = output::value(Format::JSON, document);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

const PRETTY: Format = Format { pretty: true, ..Format::JSON };

/// The parts of a request that these endpoints read.
pub struct Request<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The query parameters.
    pub query: &'a Query,
    /// The method.
    pub method: &'a Method,
    /// The server's clock.
    pub clock: &'a Clock,
}

impl Request<'_> {
    fn get(&self, answer: impl FnOnce(&Self) -> Response<Body>) -> Response<Body> {
        match *self.method {
            Method::GET => answer(self),
            _ => self.refuse(&Status::method_not_allowed()),
        }
    }

    fn refuse(&self, status: &Status) -> Response<Body> {
        output::refuse(self.headers, self.query, status)
    }

    fn value(&self, value: &Value) -> Response<Body> {
        match Format::plain(self.headers, self.query) {
            Ok(format) => output::value(format, value),
            Err(status) => self.refuse(&status),
        }
    }

    /// A document of built-in kinds: refused where `Accept` names none of its representations.
    fn routed(&self, document: impl FnOnce() -> Response<Body>) -> Response<Body> {
        match negotiate::check_representation(self.headers, &negotiate::OBJECTS) {
            Ok(()) => document(),
            Err(status) => self.refuse(&status),
        }
    }

    /// JSON, whichever other encodings `Accept` names too.
    fn version(&self) -> Response<Body> {
        match negotiate::check_representation(self.headers, &["application/json"]) {
            Ok(()) => output::value(PRETTY, &version::version()),
            Err(status) => self.refuse(&status),
        }
    }

    /// Where verifiers of service account tokens find the keys.
    // pkg/serviceaccount/openidmetadata.go
    fn openid_configuration(&self) -> Response<Body> {
        let host = self.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let configuration = json!({
            "issuer": ISSUER,
            "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        });
        openid("application/json", &configuration)
    }

    fn core(&self, served: &Served) -> Response<Body> {
        let host = self.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]);
        let legacy = || json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses});
        self.either(legacy, || served.aggregated_core())
    }

    fn named(&self, served: &Served) -> Response<Body> {
        self.either(|| served.group_list(), || served.aggregated())
    }

    /// The legacy or the aggregated discovery document, whichever `Accept` names first.
    fn either<'a>(&self, legacy: impl FnOnce() -> Value, aggregated: impl FnOnce() -> &'a Document) -> Response<Body> {
        let clause = negotiate::choose(self.headers, |_, clause| {
            matches!(clause.conversion(), None | Some(("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")))
        });
        match clause {
            Some((encoding, clause)) if clause.conversion().is_some() => {
                aggregated().aggregated(self.headers, encoding)
            }
            Some(_) => self.value(&legacy()),
            None => self.refuse(&Status::not_acceptable(&negotiate::OBJECTS)),
        }
    }

    fn group(&self, served: &Served, group: &str) -> Response<Body> {
        match served.group(group) {
            Some(group) => self.value(&group.list()),
            None => missing(self.headers, self.query, group),
        }
    }

    fn versioned(&self, served: &Served, group: &str, version: &str) -> Response<Body> {
        match served.group(group).and_then(|group| group.version(version)) {
            Some(version) => self.get(|request| request.routed(|| request.value(&version.list(group)))),
            None => missing(self.headers, self.query, group),
        }
    }
}

/// `/`: the paths that are served.
fn paths(served: &Served) -> Value {
    let mut paths: Vec<String> = [
        "/api",
        "/apis",
        "/apis/",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/version",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain(health::paths())
    .collect();
    for group in served.groups() {
        paths.extend(group.versions.iter().map(|version| match &*group.name {
            "" => format!("/api/{}", version.name),
            name => format!("/apis/{name}/{}", version.name),
        }));
        if !group.name.is_empty() {
            paths.push(format!("/apis/{}", group.name));
        }
    }
    paths.sort();
    paths.dedup();
    json!({"paths": paths})
}
