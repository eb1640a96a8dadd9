//! GET of one object.

use super::page;
use crate::answer::Answer;
use crate::call::Call;
use crate::options::list::resource_version;
use crate::status::Result;
use http::StatusCode;

/// Answers with one object.
pub(super) async fn get(call: &Call) -> Result<Answer> {
    let at_least = resource_version(call.query.get("resourceVersion"))?;
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
