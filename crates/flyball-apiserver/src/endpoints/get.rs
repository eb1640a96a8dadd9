//! GET of one object.

use crate::endpoints::page;
use crate::request::context::ResourceRequest;
use crate::request::options::list::parse_resource_version;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use http::StatusCode;

/// Answers with one object.
pub(crate) async fn get(request: &ResourceRequest) -> Result<ApiResponse> {
    let at_least = request.info.query.get("resourceVersion").map(parse_resource_version).transpose();
    let at_least = at_least.map_err(|why| Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    page::wait_for(request, at_least.unwrap_or(0)).await?;
    match request.store().get(request.key()).await {
        Ok(Some(entry)) => {
            let object = request.kind.convert_from_storage(&entry.value, entry.revision).await?;
            Ok(ApiResponse::Object { code: StatusCode::OK, kind: request.kind.clone(), object })
        }
        Ok(None) => Err(request.not_found()),
        Err(error) => request.store_failed(error),
    }
}
