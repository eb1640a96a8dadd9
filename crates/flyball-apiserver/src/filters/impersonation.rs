//! Refuses impersonation by name, because it is not supported: a request must never run as another user than it says.
// apiserver/pkg/endpoints/filters/impersonation/impersonation.go

use crate::filters::{Next, Request, Response, refuse};
use crate::status::Status;

pub(super) async fn filter(request: Request, next: Next) -> Response {
    let header = request.headers().keys().find(|name| name.as_str().starts_with("impersonate-"));
    if let Some(name) = header {
        let status = Status::bad_request(format!("impersonation is not supported: remove the header {name}"));
        return refuse(&request, &status);
    }
    next.run(request).await
}
