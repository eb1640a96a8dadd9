//! PATCH with an applied configuration: server-side apply.

use crate::endpoints::{Part, decode, update};
use crate::registry::field_manager::Author;
use crate::registry::{object, prepare};
use crate::request::context::Call;
use crate::request::options::{FieldValidation, PatchType, WriteOptions};
use crate::response::Answer;
use crate::status::{Cause, Result, Status};
use flyball_schema::managed_fields::{ApplyError, Conflict};
use http::StatusCode;
use serde_json::Value;

/// Merges the configuration into the object, or creates the object from it.
pub(crate) async fn apply(call: &Call, part: Part) -> Result<Answer> {
    let options = WriteOptions::patch(&call.query, &call.headers, PatchType::Apply)?;
    let (config, complaints) = decode::configuration(call)?;
    let author = Author::of(call, part, &options);
    update::write(call, part, options.dry_run, |live| {
        if live.is_none() && part != Part::Whole {
            return Err(call.not_found());
        }
        let applied = author.apply(live, &config, options.force).map_err(refused)?;
        strict(call, &options, &complaints)?;
        let Some(object) = applied else { return Ok(None) };
        fit(call, object, live).map(Some)
    })
    .await
}

fn strict(call: &Call, options: &WriteOptions, complaints: &[String]) -> Result<()> {
    match options.field_validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            let why = format!("error strict decoding YAML: {}", complaints.join("; "));
            Err(Status::bad_request(why))
        }
        FieldValidation::Warn => {
            complaints.iter().for_each(|complaint| call.warn(complaint));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Makes the merged object one of its kind again.
fn fit(call: &Call, object: Value, live: Option<&Value>) -> Result<Value> {
    let (mut object, _) = decode::value(&call.kind, object)
        .map_err(|why| Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why))?;
    let uid = object::text(&object, "uid");
    if live.is_none() && !uid.is_empty() {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Status::conflict(&call.kind.resource, call.name(), why));
    }
    decode::check_namespace(call, &mut object)?;
    decode::check_name(call, &object)?;
    prepare::complete(&call.kind, &mut object);
    Ok(object)
}

/// What a client is told of an apply that is refused.
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
