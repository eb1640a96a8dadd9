//! Finds out who sends a request; refuses credentials that are not valid with 401.
// apiserver/pkg/endpoints/filters/authentication.go

use crate::audit::Stage;
use crate::authn;
use crate::filters::{Next, Request, Response, audit, context, context_mut, refuse};
use crate::status::Status;
use http::header::AUTHORIZATION;

pub(super) async fn filter(mut request: Request, next: Next) -> Response {
    let server = context(&request).server.clone();
    let authenticated = authn::authenticate(&server, request.headers(), request.extensions()).await;
    match authenticated {
        Ok(user) => {
            context_mut(&mut request).user = user;
            request.headers_mut().remove(AUTHORIZATION);
            next.run(request).await
        }
        Err(error) => {
            tracing::debug!(%error, audit_id = ?context(&request).audit_id, "a request is not authenticated");
            audit_failure(request)
        }
    }
}

/// Refuses with 401, and records the attempt in one audit event.
// apiserver/pkg/endpoints/filters/authn_audit.go
fn audit_failure(request: Request) -> Response {
    let (request, record) = audit::begin(request);
    let response = refuse(&request, &Status::unauthorized());
    if let Some(record) = record {
        record.stage(context(&request), Stage::ResponseStarted);
    }
    response
}
