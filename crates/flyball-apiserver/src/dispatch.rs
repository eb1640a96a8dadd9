//! The end of the pipeline: routes a request to its endpoint, and encodes what the endpoint returns.

use crate::encoding::output::ResponseEncoder;
use crate::encoding::{gzip, output};
use crate::endpoints;
use crate::filters::{Request, RequestBody, Response};
use crate::nonresource;
use crate::request::context::{RequestContext, ResourceRequest};
use crate::response::ApiResponse;
use crate::routing::{self, Route};
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::go_text;
use futures::FutureExt;
use http::HeaderValue;
use http::header::WARNING;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// The most bytes that the body of a request may have.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// How often one write is handled again because the definition of its kind has changed.
const MAX_DEFINITION_CHANGES: usize = 8;

/// Handles a request that every filter has passed on.
pub(crate) async fn dispatch(request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let context: RequestContext = parts.extensions.remove().expect("request_info makes the context");
    let (served, headers) = (context.server.registry().served(), &parts.headers);
    let info = &context.info;
    let response = match routing::route(&served, info) {
        Route::Resource(kind, target) => {
            let target = target.clone();
            let request = ResourceRequest::new(kind, target, context, headers.clone());
            resource(request, body).await
        }
        Route::Refused(status) => output::refuse(headers, &info.query, &status),
        Route::Missing(target) => nonresource::not_found(headers, &info.query, target),
        Route::NonResource => nonresource::respond(&context, &served, &parts).await,
    };
    gzip::compress(headers, response).await
}

async fn resource(mut request: ResourceRequest, body: RequestBody) -> Response {
    let encoder =
        match ResponseEncoder::choose(&request.headers, &request.info.query, &request.kind, request.target.verb) {
            Ok(encoder) => encoder,
            Err(status) => return output::refuse(&request.headers, &request.info.query, &status),
        };
    let (clock, audit) = (request.server.clock(), request.audit.clone());
    let (result, warnings) = match request.target.verb.is_read_only() {
        true => (endpoints::handle(&request).await, request.warnings()),
        false => match read(body).await {
            Ok(body) => {
                request.body = body;
                write(request).await
            }
            Err(status) => (Err(status), Vec::new()),
        },
    };
    if let Some(record) = audit {
        record.response(&result);
    }
    let mut response = encoder.respond(result, &clock);
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", go_text::quote(&warning))) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

async fn read(body: RequestBody) -> Result<Bytes> {
    let collecting = Limited::new(body, MAX_BODY_BYTES).collect();
    match collecting.boxed().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(MAX_BODY_BYTES)),
        Err(error) => Err(Status::bad_request(format!("read the body: {error}"))),
    }
}

/// Runs a write detached from the request: dropping this future, or its deadline, leaves nothing half done.
// apiserver/pkg/endpoints/handlers/finisher/finisher.go
async fn write(request: ResourceRequest) -> (Result<ApiResponse>, Vec<String>) {
    let server = request.server.clone();
    match server.writes().spawn(handle_write(request)).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => (Err(Status::service_unavailable("the server is shutting down")), Vec::new()),
    }
}

/// Handles a write by the kind that serves it; again if the definition of a custom resource changes before the commit.
async fn handle_write(mut request: ResourceRequest) -> (Result<ApiResponse>, Vec<String>) {
    let mut result = endpoints::handle(&request).await;
    for _ in 0..MAX_DEFINITION_CHANGES {
        if !matches!(&result, Err(status) if *status == Status::definition_changed()) {
            break;
        }
        let served = request.server.registry().served();
        let kind = match routing::route(&served, &request.info) {
            Route::Resource(kind, _) => kind,
            Route::Refused(status) => return (Err(status), request.warnings()),
            Route::Missing(_) | Route::NonResource => return (Err(Status::no_such_path()), request.warnings()),
        };
        request.kind = kind;
        result = endpoints::handle(&request).await;
    }
    (result, request.warnings())
}
