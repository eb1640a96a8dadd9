//! Makes the request's context, from its method, path and query.
// apiserver/pkg/endpoints/filters/requestinfo.go

use crate::filters::audit_init::AUDIT_ID;
use crate::filters::{Next, Request, Response};
use crate::request::context::RequestContext;
use crate::request::info::RequestInfo;
use crate::server::ApiServer;
use http::HeaderValue;

pub(super) async fn filter(mut request: Request, next: Next) -> Response {
    let info = RequestInfo::read(request.method(), request.uri());
    let audit_id = request.headers().get(AUDIT_ID).cloned();
    let audit_id = audit_id.unwrap_or(HeaderValue::from_static(""));
    let server: ApiServer = request.extensions_mut().remove().expect("a request enters through a server");
    request.extensions_mut().insert(RequestContext::new(server, info, audit_id));
    next.run(request).await
}
