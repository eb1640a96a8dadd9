//! Answers that a test gives in the place of the API server.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};

/// A response whose body may be cut short.
pub(crate) type AnyResponse = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// An answer in the place of the API server's; see [`Cluster::break_with`](crate::Cluster::break_with).
#[derive(Debug)]
pub struct Answer {
    pub(crate) response: AnyResponse,
}

impl Answer {
    /// A refusal as API servers write it: a `Status` with this code, its usual reason, and a message.
    ///
    /// A refusal with code 429 also has the header `Retry-After: 1`.
    pub fn refusal(code: u16, message: &str) -> Answer {
        let code = StatusCode::from_u16(code).expect("the code of an HTTP response has three digits");
        let mut answer = Answer::json(code.as_u16(), &status(code, message));
        if code == StatusCode::TOO_MANY_REQUESTS {
            let seconds = http::HeaderValue::from_static("1");
            answer.response.headers_mut().insert("Retry-After", seconds);
        }
        answer
    }

    /// A JSON document.
    pub fn json(code: u16, document: &Value) -> Answer {
        Answer::text(code, document.to_string())
    }

    /// Any text: the lines of a watch, for example.
    pub fn text(code: u16, text: impl Into<String>) -> Answer {
        let body = Full::new(Bytes::from(text.into())).map_err(|never| match never {});
        let response = Response::builder().status(code).header("Content-Type", "application/json");
        let response = response.body(body.boxed_unsync());
        Answer {
            response: response.expect("the code of an HTTP response has three digits"),
        }
    }

    /// An answer of which only the head arrives: its body neither comes nor ends.
    pub fn silence() -> Answer {
        Answer::silence_until(std::future::pending())
    }

    /// As [`Answer::silence`], for as long as `end` takes; then the body ends.
    pub fn silence_until(end: impl Future<Output = ()> + Send + 'static) -> Answer {
        let body = stream::pending().take_until(Box::pin(end));
        Answer { response: Response::new(streamed(body)) }
    }
}

/// A `Status` that says why a request failed.
pub(crate) fn status(code: StatusCode, message: &str) -> Value {
    let reason = code.canonical_reason().unwrap_or_default().replace(' ', "");
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    })
}

pub(crate) fn streamed(
    pieces: impl Stream<Item = Result<Bytes, kube::Error>> + Send + 'static,
) -> UnsyncBoxBody<Bytes, kube::Error> {
    StreamBody::new(pieces.map(|piece| piece.map(http_body::Frame::data))).boxed_unsync()
}
