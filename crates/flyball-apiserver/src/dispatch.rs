//! From a request to its response: choose the output, read the body, handle, and tell what there is to warn of.

use crate::encoding::output::{self, Output};
use crate::endpoints;
use crate::http::body::Body;
use crate::request::context::ResourceRequest;
use crate::request::duration;
use crate::status::Result;
use bytes::Bytes;
use flyball_schema::go_text;
use http::header::WARNING;
use http::{HeaderValue, Response};
use std::future::Future;

/// Answers a request to a resource.
pub(crate) async fn answer(mut request: ResourceRequest, body: impl Future<Output = Result<Bytes>>) -> Response<Body> {
    let output = match Output::choose(&request.headers, &request.query, &request.kind, request.target.verb) {
        Ok(output) => output,
        Err(status) => return output::refuse(&request.headers, &request.query, &status),
    };
    if let Err(status) = duration::check_timeout(&request) {
        return output::refuse(&request.headers, &request.query, &status);
    }
    let answer = match request.reads_body() {
        true => match body.await {
            Ok(body) => {
                request.body = body;
                endpoints::handle(&request).await
            }
            Err(status) => Err(status),
        },
        false => endpoints::handle(&request).await,
    };
    let mut response = output.respond(answer, &request.server.clock());
    for warning in request.warnings() {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", go_text::quote(&warning))) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
