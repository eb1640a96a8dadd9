//! The refusals of the HTTP API: a Kubernetes `Status`, the API server's own where it has one.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::CONNECTION},
    response::{IntoResponse, Response},
};
use kube::core::{
    Status,
    response::{StatusCause, StatusDetails},
};
use std::time::Duration;

/// A refusal and its HTTP code.
#[derive(Debug)]
pub struct Refusal(Box<Status>);

impl Refusal {
    /// 400: the request itself is invalid.
    pub fn bad_request(message: &str) -> Refusal {
        Refusal::new(400, "BadRequest", message)
    }

    /// 400: a parameter of the path is not what `expected` says.
    pub fn invalid_parameter(parameter: &str, value: &str, expected: &str) -> Refusal {
        let message = format!("invalid {parameter} {value:?}: expected {expected}");
        let mut refusal = Refusal::bad_request(&message);
        let cause = StatusCause {
            reason: "FieldValueInvalid".into(),
            message,
            field: parameter.into(),
        };
        refusal.0.details = Some(StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: vec![cause],
            retry_after_seconds: 0,
        });
        refusal
    }

    /// 403: the request may come from a web page of another site.
    pub fn forbidden(message: &str) -> Refusal {
        Refusal::new(403, "Forbidden", message)
    }

    /// 404: there is no such path.
    pub fn not_found(message: &str) -> Refusal {
        Refusal::new(404, "NotFound", message)
    }

    /// 405: the path exists, for other methods.
    pub fn method_not_allowed() -> Refusal {
        Refusal::new(405, "MethodNotAllowed", "method not allowed: GET / lists the endpoints")
    }

    /// 408: the body did not arrive.
    pub fn request_timeout(limit: Duration) -> Refusal {
        let message = format!("the body did not arrive within {} seconds", limit.as_secs());
        Refusal::new(408, "Timeout", &message)
    }

    /// 413: the body is larger than this API reads.
    pub fn too_large() -> Refusal {
        Refusal::new(413, "RequestEntityTooLarge", "the body is larger than 2 MiB")
    }

    /// 415: the body is not JSON.
    pub fn unsupported_media_type(found: &str) -> Refusal {
        let message = format!("unsupported Content-Type {found:?}: expected application/json");
        Refusal::new(415, "UnsupportedMediaType", &message)
    }

    /// 503: the API server does not answer, or is not ready.
    pub fn unavailable(message: &str) -> Refusal {
        Refusal::new(503, "ServiceUnavailable", message)
    }

    /// Whether the API server refused because the object was changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.0.reason == "Conflict"
    }

    fn new(code: u16, reason: &str, message: &str) -> Refusal {
        Refusal(Box::new(Status::failure(message, reason).with_code(code)))
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Refusal {
        match error {
            kube::Error::Api(status) => Refusal(status),
            other => Refusal::unavailable(&format!("the API server does not answer: {other}")),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = StatusCode::from_u16(self.0.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut status = serde_json::json!(self.0);
        status["apiVersion"] = "v1".into();
        status["kind"] = "Status".into();
        let mut response = (code, Json(status)).into_response();
        // The rest of the body is not read, so the connection cannot be used again.
        if matches!(code, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
