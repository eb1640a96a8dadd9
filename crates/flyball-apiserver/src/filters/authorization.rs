//! Refuses with 403 what the user is not allowed to do.
// apiserver/pkg/endpoints/filters/authorization.go

use crate::authz::Access;
use crate::filters::{Next, Request, Response, context, refuse_without_sniffing};

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let context = context(&request);
    let verb = context.info.verb();
    let access = Access::of(&context.user, &context.info, &verb);
    match context.server.require_access(&access).await {
        Ok(()) => next.run(request).await,
        Err(status) => refuse_without_sniffing(&request, &status),
    }
}
