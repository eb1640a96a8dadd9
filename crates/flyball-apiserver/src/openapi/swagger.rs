//! `/openapi/v2`: an empty document. Types are published as OpenAPI v3 only; kubectl falls back to v2 for kinds that v3
//! lacks, and fails if that document is missing, but not if it is empty.

use crate::encoding::negotiate;
use crate::{Body, version};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::json;

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const TITLE: &str = "Kubernetes";

/// Responds in JSON, or in protobuf, which Go clients require.
pub fn respond(headers: &HeaderMap) -> Response<Body> {
    let json = || {
        json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": {}})
            .to_string()
            .into_bytes()
    };
    let clauses = negotiate::accept(headers).into_iter();
    let mut chosen = clauses.filter_map(|clause| {
        let protobuf = [
            "com.github.proto-openapi.spec.v2@v1.0+protobuf",
            "com.github.proto-openapi.spec.v2.v1.0+protobuf",
        ];
        if clause.admits("application", "json") {
            return Some(("application/json", json()));
        }
        protobuf
            .iter()
            .any(|subtype| clause.admits("application", subtype))
            .then(|| (PROTOBUF, protobuf_bytes()))
    });
    let chosen = match headers.contains_key(ACCEPT) {
        true => chosen.next(),
        false => Some(("application/json", json())),
    };
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    match chosen {
        None => *response.status_mut() = StatusCode::NOT_ACCEPTABLE,
        Some((content_type, bytes)) => {
            *response.body_mut() = Body::whole(bytes);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
    }
    response
}

fn info() -> serde_json::Value {
    json!({"title": TITLE, "version": version::git_version()})
}

/// gnostic's `openapi.v2.Document` with `swagger`, `info` (`title`, `version`) and empty `paths`.
fn protobuf_bytes() -> Vec<u8> {
    let info = [field(1, TITLE.as_bytes()), field(2, version::git_version().as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, b"")].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).ok().filter(|length| *length < 0x80).expect("short texts only");
    [&[number << 3 | 2, length], bytes].concat()
}
