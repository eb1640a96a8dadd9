//! GET of one object.

use crate::endpoints::page;
use crate::request::context::Call;
use crate::request::options::list::parse_resource_version;
use crate::response::Answer;
use crate::status::{Result, Status};
use http::StatusCode;

/// Answers with one object.
pub(crate) async fn get(call: &Call) -> Result<Answer> {
    let at_least = call.query.get("resourceVersion").map(parse_resource_version).transpose();
    let at_least = at_least.map_err(|why| Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    page::wait_for(call, at_least.unwrap_or(0)).await?;
    match call.store().get(call.key()).await {
        Ok(Some(entry)) => {
            let object = call.kind.present(&entry.value, entry.revision);
            Ok(Answer::Object { code: StatusCode::OK, kind: call.kind.clone(), object })
        }
        Ok(None) => Err(call.not_found()),
        Err(error) => call.store_failed(error),
    }
}
