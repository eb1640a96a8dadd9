//! Gives every request an audit id, and names it in the response: the client's own, if it sends one.
// apiserver/pkg/endpoints/filters/audit_init.go

use crate::filters::{Next, Request, Response};
use http::{HeaderName, HeaderValue};

/// The header that names the audit id, in requests and in responses.
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

pub(super) async fn filter(mut request: Request, next: Next) -> Response {
    let id = match request.headers().get(AUDIT_ID).filter(|id| !id.is_empty()) {
        Some(id) => id.clone(),
        None => HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).expect("a UUID is a header value"),
    };
    request.headers_mut().insert(AUDIT_ID, id.clone());
    let mut response = next.run(request).await;
    response.headers_mut().insert(AUDIT_ID, id);
    response
}
