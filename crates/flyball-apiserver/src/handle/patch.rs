//! PATCH with a JSON patch or a merge patch.

use super::own::{Writer, other_versions};
use super::{Part, decode, prepare, update};
use crate::answer::Answer;
use crate::call::Call;
use crate::options::{PatchType, WriteOptions, causes};
use crate::status::{Result, Status};
use flyball_schema::json_patch::{JsonPatch, PatchError};
use flyball_schema::merge_patch;
use flyball_schema::violation::Violation;
use serde_json::Value;

/// Changes an object as a patch says.
pub(super) async fn patch(call: &Call, part: Part, kind: PatchType) -> Result<Answer> {
    let options = WriteOptions::patch(&call.query, &call.headers, kind)?;
    let patch = Patch::read(call, kind)?;
    let others = other_versions(call);
    update::write(call, part, options.dry_run, |live| {
        let live = live.ok_or_else(|| call.not_found())?;
        let mut object = live.clone();
        patch.apply(&mut object)?;
        let object = fit(call, &options, &patch, object)?;
        let now = call.now();
        let writer = Writer {
            kind: &call.kind,
            others: &others,
            part,
            manager: &options.manager,
            now: &now,
        };
        let mut object = object;
        writer.update(Some(live), &mut object);
        Ok(Some(object))
    })
    .await
}

/// A patch that has been read.
pub(super) enum Patch {
    Json(JsonPatch),
    Merge(Value, Vec<String>),
}

impl Patch {
    /// Reads the body of a PATCH.
    pub fn read(call: &Call, kind: PatchType) -> Result<Patch> {
        match kind {
            PatchType::Merge => {
                let (patch, complaints) = decode::merge_patch(&call.body)?;
                Ok(Patch::Merge(patch, complaints))
            }
            _ => Ok(Patch::Json(JsonPatch::read(&call.body).map_err(refused)?)),
        }
    }

    /// Changes an object.
    pub fn apply(&self, object: &mut Value) -> Result<()> {
        match self {
            Patch::Json(patch) => patch.apply(object).map_err(refused),
            Patch::Merge(patch, _) => {
                merge_patch::apply(object, patch);
                Ok(())
            }
        }
    }

    fn complaints(&self) -> &[String] {
        match self {
            Patch::Json(patch) => &patch.complaints,
            Patch::Merge(_, complaints) => complaints,
        }
    }
}

fn refused(error: PatchError) -> Status {
    match &error {
        PatchError::Malformed(why) => Status::bad_request(why),
        PatchError::TooManyOperations(_) => Status::too_much(error.to_string()),
        PatchError::Inapplicable(_) => Status::unprocessable(),
    }
}

/// Makes the patched object one of its kind again: decoded, defaulted, with the name and namespace of the path.
fn fit(call: &Call, options: &WriteOptions, patch: &Patch, object: Value) -> Result<Value> {
    let text = object.to_string();
    let invalid = |why: String| {
        let violation = Violation::invalid("patch", text.as_str(), &why);
        Status::invalid("", "", "", causes(vec![violation]))
    };
    let (mut object, mut complaints) = decode::value(&call.kind, object).map_err(&invalid)?;
    complaints.splice(..0, patch.complaints().iter().cloned());
    decode::report(call, options.field_validation, complaints, invalid)?;
    decode::check_namespace(call, &mut object)?;
    decode::check_name(call, &object)?;
    prepare::fill(&call.kind, &mut object);
    Ok(object)
}
