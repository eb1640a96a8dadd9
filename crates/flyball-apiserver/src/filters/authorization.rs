//! Refuses with 403 what the user is not allowed to do.
// apiserver/pkg/endpoints/filters/authorization.go

use crate::authz;
use crate::filters::{Next, Request, Response, context, refuse};
use http::HeaderValue;

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let context = context(&request);
    match authz::authorize(&context.user, &context.info) {
        Ok(()) => next.run(request).await,
        Err(status) => {
            let mut response = refuse(&request, &status);
            let nosniff = HeaderValue::from_static("nosniff");
            response.headers_mut().insert("x-content-type-options", nosniff);
            response
        }
    }
}
