//! A document that changes seldom: encoded once, identified by a hash, and not sent again to a client that has it.

use crate::Body;
use crate::encoding::negotiate::Encoding;
use crate::encoding::{wire, yaml};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha512};
use std::fmt::Write;

/// A document and its hash.
pub struct Document {
    json: Bytes,
    hash: String,
}

impl Document {
    /// Encodes a value.
    pub fn new(value: &Value) -> Document {
        Document::encoded(value.to_string())
    }

    /// A document that is encoded in JSON already.
    pub fn encoded(json: impl Into<Bytes>) -> Document {
        let json = json.into();
        let hash = hash(&json);
        Document { json, hash }
    }

    /// A document that is encoded in JSON already and identified by something else than its bytes.
    pub fn identified(json: impl Into<Bytes>, hash: String) -> Document {
        Document { json: json.into(), hash }
    }

    /// The hash of the document, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The document as JSON, or 304 if the client has it.
    pub fn json(&self, headers: &HeaderMap, content_type: &'static str) -> Response<Body> {
        self.respond(headers, content_type, || self.json.clone())
    }

    /// The document as aggregated discovery.
    pub fn aggregated(&self, headers: &HeaderMap, encoding: Encoding) -> Response<Body> {
        let mut response = match encoding {
            Encoding::Json => {
                self.json(headers, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            }
            Encoding::Yaml => {
                let content_type = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
                let value = || serde_json::from_slice::<Value>(&self.json).expect("encoded by this server");
                self.respond(headers, content_type, || yaml::write(&value()).into())
            }
            Encoding::Protobuf => {
                let content_type =
                    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
                let value = || serde_json::from_slice::<Value>(&self.json).expect("encoded by this server");
                let bytes = || wire::object(&value()).expect("discovery has a place in protobuf");
                self.respond(headers, content_type, || bytes().into())
            }
        };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }

    fn respond(&self, headers: &HeaderMap, content_type: &'static str, body: impl FnOnce() -> Bytes) -> Response<Body> {
        let etag = format!("\"{}\"", self.hash);
        let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let known = known
            .flat_map(|value| value.split(','))
            .any(|value| value.trim() == etag || value.trim() == "*");
        let mut response = Response::new(if known { Body::empty() } else { Body::whole(body()) });
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let headers = response.headers_mut();
        headers.insert(ETAG, HeaderValue::try_from(etag).expect("hexadecimal digits in quotes"));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        response
    }
}

/// SHA-512 in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha512::digest(bytes).iter().fold(String::with_capacity(128), |mut hash, byte| {
        write!(hash, "{byte:02X}").expect("a string takes every byte");
        hash
    })
}
