//! Refuses with 403 what the user is not allowed to do.
// apiserver/pkg/endpoints/filters/authorization.go

use crate::authz::Access;
use crate::filters::{Next, Request, Response, context, refuse_without_sniffing};

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let context = context(&request);
    let verb = context.info.verb();
    let access = Access::of(&context.user, &context.info, &verb);
    let decision = match context.server.authorize(&access).await {
        Ok(decision) => decision,
        Err(status) => return refuse_without_sniffing(&request, &status),
    };
    if context.audit.is_some() {
        context.annotate("authorization.k8s.io/decision", if decision.allowed { "allow" } else { "forbid" });
        context.annotate("authorization.k8s.io/reason", decision.reason.clone());
    }
    match decision.allowed {
        true => next.run(request).await,
        false => refuse_without_sniffing(&request, &access.forbidden(&decision.reason)),
    }
}
