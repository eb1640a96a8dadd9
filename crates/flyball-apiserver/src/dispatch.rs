//! From a request to its response: choose the output, read the body, handle, and tell what there is to warn of.

use crate::encoding::output::{self, Output};
use crate::endpoints;
use crate::http::body::Body;
use crate::request::context::Call;
use crate::request::duration;
use crate::status::Result;
use bytes::Bytes;
use flyball_schema::go_text;
use http::header::WARNING;
use http::{HeaderValue, Response};
use std::future::Future;

/// Answers a request to a resource.
pub(crate) async fn answer(mut call: Call, body: impl Future<Output = Result<Bytes>>) -> Response<Body> {
    let output = match Output::choose(&call.headers, &call.query, &call.kind, call.target.verb) {
        Ok(output) => output,
        Err(status) => return output::refuse(&call.headers, &call.query, &status),
    };
    if let Err(status) = duration::check_timeout(&call) {
        return output::refuse(&call.headers, &call.query, &status);
    }
    let answer = match call.reads_body() {
        true => match body.await {
            Ok(body) => {
                call.body = body;
                endpoints::handle(&call).await
            }
            Err(status) => Err(status),
        },
        false => endpoints::handle(&call).await,
    };
    let mut response = output.respond(answer, &call.server.clock());
    for warning in call.warnings() {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", go_text::quote(&warning))) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
