//! PATCH with an applied configuration: server-side apply.

use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::FieldManager;
use crate::registry::generic::Write;
use crate::registry::{object, strategy};
use crate::request::context::ResourceRequest;
use crate::request::options::{FieldValidation, PatchType, WriteOptions};
use crate::response::ApiResponse;
use crate::status::{Cause, Result, Status};
use flyball_schema::managed_fields::{ApplyError, Conflict};
use http::StatusCode;
use serde_json::Value;

/// Merges the configuration into the object, or creates the object from it.
pub(crate) async fn apply(request: &ResourceRequest, subresource: Subresource) -> Result<ApiResponse> {
    let options = WriteOptions::patch(&request.info.query, &request.headers, PatchType::Apply)?;
    let (config, complaints) = decode::configuration(request)?;
    request.audit_request(&config);
    let manager = FieldManager::of(request, subresource, &options);
    let write = Write::new(request, subresource, &options);
    write
        .update(|live| {
            if live.is_none() && subresource != Subresource::Whole {
                return Err(request.not_found());
            }
            let applied = manager.apply(live, &config, options.force).map_err(refused)?;
            strict(request, &options, &complaints)?;
            let Some(object) = applied else { return Ok(None) };
            fit(request, object, live).map(Some)
        })
        .await
}

fn strict(request: &ResourceRequest, options: &WriteOptions, complaints: &[String]) -> Result<()> {
    match options.field_validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            let why = format!("error strict decoding YAML: {}", complaints.join("; "));
            Err(Status::bad_request(why))
        }
        FieldValidation::Warn => {
            complaints.iter().for_each(|complaint| request.warn(complaint));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Makes the merged object one of its kind again.
fn fit(request: &ResourceRequest, object: Value, live: Option<&Value>) -> Result<Value> {
    let (mut object, _) = decode::value(&request.kind, object)
        .map_err(|why| Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    let uid = object::text(&object, "uid");
    if live.is_none() && !uid.is_empty() {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Status::conflict(&request.kind.resource, request.name(), why));
    }
    decode::check_namespace(request, &mut object)?;
    decode::check_name(request, &object)?;
    strategy::default_merged(&request.kind, &mut object);
    Ok(object)
}

/// The Status of a refused apply.
pub(crate) fn refused(error: ApplyError) -> Status {
    match error {
        ApplyError::BadRequest(why) => Status::bad_request(why),
        ApplyError::Untyped(why) => Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why),
        ApplyError::Conflicts(conflicts) => {
            let cause = |conflict: &Conflict| Cause {
                reason: "FieldManagerConflict".into(),
                message: conflict.message(),
                field: conflict.field.clone(),
            };
            Status::apply_conflict(conflicts.to_string(), conflicts.0.iter().map(cause).collect())
        }
    }
}
