//! Answers a request whose handler panics with 500: other requests of the same connection are not affected.
// apiserver/pkg/server/filters/wrap.go

use crate::encoding::output;
use crate::filters::audit_init::AUDIT_ID;
use crate::filters::{Next, Request, Response};
use futures::FutureExt;
use http::StatusCode;
use std::panic::AssertUnwindSafe;

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let audit_id = request.headers().get(AUDIT_ID).cloned();
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(%method, %uri, ?audit_id, "a request caused a panic");
            let text = "This request caused apiserver to panic. Look in the logs for details.\n";
            output::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}
