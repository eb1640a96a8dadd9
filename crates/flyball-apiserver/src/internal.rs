//! Requests that the server makes itself, past its filters.

use crate::authn::user::{SYSTEM_MASTERS, User};
use crate::request::context::{RequestContext, ResourceRequest};
use crate::request::info::RequestInfo;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::Value;

/// A request with an object; a patch is a server-side apply.
pub(crate) fn request(server: &ApiServer, method: Method, uri: &str, object: &Value) -> Result<ResourceRequest> {
    let info = RequestInfo::read(&method, &uri.parse().map_err(|_| Status::no_such_path())?);
    let target = info.resource.clone().ok_or_else(Status::no_such_path)?;
    let served = server.registry().served();
    let kind = served.find(&target.group, &target.version, &target.resource).cloned();
    let kind = kind.ok_or_else(Status::no_such_path)?;
    let mut context = RequestContext::new(server.clone(), info, HeaderValue::from_static("internal"));
    context.user = User::new("system:apiserver", [SYSTEM_MASTERS]);
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static("kube-apiserver"));
    if method == Method::PATCH {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/apply-patch+yaml"));
    }
    let mut request = ResourceRequest::new(kind, target, context, headers);
    request.body = object.to_string().into();
    Ok(request)
}
