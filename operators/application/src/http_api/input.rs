//! What a request carries, checked before any of it reaches the API server: path parameters and bodies.

use super::refusal::Refusal;
use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
};
use kube::api::DynamicObject;
use std::time::Duration;
use tokio::time::timeout;

const MAX_NAMESPACE_BYTES: usize = 63;
const MAX_NAME_BYTES: usize = 253;

/// How long a client may take to send its body.
const MAX_BODY_WAIT: Duration = Duration::from_secs(30);

/// The namespace that a path names.
pub struct NamespacePath {
    /// An RFC 1123 label.
    pub namespace: String,
}

/// The namespace and the name that a path names.
pub struct ObjectPath {
    /// An RFC 1123 label.
    pub namespace: String,
    /// An RFC 1123 subdomain.
    pub name: String,
}

/// An object sent as JSON.
pub struct JsonBody(pub DynamicObject);

impl<S: Send + Sync> FromRequestParts<S> for NamespacePath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<NamespacePath, Refusal> {
        let parameters = parameters(parts, state).await?;
        Ok(NamespacePath { namespace: namespace(&parameters)? })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ObjectPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<ObjectPath, Refusal> {
        let parameters = parameters(parts, state).await?;
        Ok(ObjectPath { namespace: namespace(&parameters)?, name: name(&parameters)? })
    }
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<JsonBody, Refusal> {
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            return Err(Refusal::unsupported_media_type(content_type));
        }
        let body = timeout(MAX_BODY_WAIT, Bytes::from_request(request, state)).await;
        let body = body.map_err(|_| Refusal::request_timeout(MAX_BODY_WAIT))?;
        let body = body.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Refusal::too_large(),
            _ => Refusal::bad_request(&format!("read the body: {rejection}")),
        })?;
        let object = serde_json::from_slice(&body);
        Ok(JsonBody(object.map_err(|error| {
            Refusal::bad_request(&format!("invalid Application in the body: {error}"))
        })?))
    }
}

async fn parameters<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<RawPathParams, Refusal> {
    let parameters = RawPathParams::from_request_parts(parts, state).await;
    parameters.map_err(|rejection| Refusal::bad_request(&format!("invalid path: {rejection}")))
}

fn namespace(parameters: &RawPathParams) -> Result<String, Refusal> {
    let value = parameter(parameters, "namespace");
    match value.len() <= MAX_NAMESPACE_BYTES && is_label(value) {
        true => Ok(value.to_owned()),
        false => Err(Refusal::invalid_parameter(
            "namespace",
            value,
            "a lowercase RFC 1123 label of at most 63 characters",
        )),
    }
}

fn name(parameters: &RawPathParams) -> Result<String, Refusal> {
    let value = parameter(parameters, "name");
    match value.len() <= MAX_NAME_BYTES && value.split('.').all(is_label) {
        true => Ok(value.to_owned()),
        false => Err(Refusal::invalid_parameter(
            "name",
            value,
            "a lowercase RFC 1123 subdomain of at most 253 characters",
        )),
    }
}

fn parameter<'a>(parameters: &'a RawPathParams, key: &str) -> &'a str {
    parameters.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
}

/// Whether a text is made of lower case letters, digits and, between them, hyphens.
// apimachinery/pkg/util/validation: dns1123LabelFmt; a label of a subdomain has no limit of its own there.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
