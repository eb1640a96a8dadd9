//! What the face answers when it cannot do what was asked: a Kubernetes `Status`, the API server's own where it has one.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use kube::core::Status;

/// A refusal and its HTTP code.
#[derive(Debug)]
pub struct Refusal(Box<Status>);

impl Refusal {
    /// 400: the request itself is wrong.
    pub fn bad_request(message: &str) -> Refusal {
        Refusal(Box::new(Status::failure(message, "BadRequest").with_code(400)))
    }

    /// 404: there is no such path.
    pub fn not_found(message: &str) -> Refusal {
        Refusal(Box::new(Status::failure(message, "NotFound").with_code(404)))
    }

    /// 405: the path exists, for other methods.
    pub fn method_not_allowed() -> Refusal {
        let message = "this path does not take that method; GET / lists what there is";
        Refusal(Box::new(Status::failure(message, "MethodNotAllowed").with_code(405)))
    }

    /// Whether the API server refused because of another write in between.
    pub fn is_conflict(&self) -> bool {
        self.0.reason == "Conflict"
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Refusal {
        match error {
            kube::Error::Api(status) => Refusal(status),
            other => {
                let message = format!("the API server does not answer: {other}");
                Refusal(Box::new(Status::failure(&message, "ServiceUnavailable").with_code(503)))
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = StatusCode::from_u16(self.0.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (code, Json(self.0)).into_response()
    }
}
