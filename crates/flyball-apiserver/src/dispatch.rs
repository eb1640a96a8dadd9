//! From a routed request to its response: negotiate the encoding, read the body, call the endpoint, add its warnings.

use crate::encoding::output::{self, ResponseEncoder};
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

/// Handles a request to a resource.
pub(crate) async fn dispatch(
    mut request: ResourceRequest,
    body: impl Future<Output = Result<Bytes>>,
) -> Response<Body> {
    let encoder =
        match ResponseEncoder::choose(&request.headers, &request.info.query, &request.kind, request.target.verb) {
            Ok(encoder) => encoder,
            Err(status) => return output::refuse(&request.headers, &request.info.query, &status),
        };
    if let Err(status) = duration::check_timeout(&request) {
        return output::refuse(&request.headers, &request.info.query, &status);
    }
    let result = match request.reads_body() {
        true => match body.await {
            Ok(body) => {
                request.body = body;
                endpoints::handle(&request).await
            }
            Err(status) => Err(status),
        },
        false => endpoints::handle(&request).await,
    };
    let mut response = encoder.respond(result, &request.server.clock());
    for warning in request.warnings() {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", go_text::quote(&warning))) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
