//! PATCH with a JSON patch, a merge patch or a strategic merge patch.

use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::FieldManager;
use crate::registry::generic::Write;
use crate::registry::strategy;
use crate::request::context::ResourceRequest;
use crate::request::options::{PatchType, WriteOptions, causes};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use flyball_schema::json_patch::{JsonPatch, PatchError};
use flyball_schema::schema::Node;
use flyball_schema::strategic_merge::{self, MergeError};
use flyball_schema::violation::Violation;
use flyball_schema::{go_text, merge_patch};
use http::StatusCode;
use serde_json::Value;

/// Changes an object as a patch says.
pub(crate) async fn patch(request: &ResourceRequest, subresource: Subresource, kind: PatchType) -> Result<ApiResponse> {
    let options = WriteOptions::patch(&request.info.query, &request.headers, kind)?;
    let patch = Patch::read(request, kind)?;
    if request.audit.is_some() {
        request.audit_request(&serde_json::from_slice(&request.body).unwrap_or_default());
    }
    let manager = FieldManager::of(request, subresource, &options);
    let write = Write::new(request, subresource, &options);
    write
        .update(|live| {
            let live = live.ok_or_else(|| request.not_found())?;
            let mut object = live.clone();
            patch.apply(&mut object, request.kind.node())?;
            let mut object = fit(request, &options, &patch, live, object)?;
            manager.update(Some(live), &mut object);
            Ok(Some(object))
        })
        .await
}

/// A patch that has been read.
pub(crate) enum Patch {
    Json(JsonPatch),
    Merge(Value, Vec<String>),
    Strategic(Value, Vec<String>),
}

impl Patch {
    /// Reads the body of a PATCH.
    pub fn read(request: &ResourceRequest, kind: PatchType) -> Result<Patch> {
        match kind {
            PatchType::Merge => {
                let (patch, complaints) = decode::merge_patch(&request.body)?;
                Ok(Patch::Merge(patch, complaints))
            }
            PatchType::Strategic => {
                let (patch, complaints) = decode::strategic_patch(&request.body)?;
                Ok(Patch::Strategic(patch, complaints))
            }
            _ => Ok(Patch::Json(JsonPatch::read(&request.body).map_err(refused)?)),
        }
    }

    /// Changes an object of a type.
    pub fn apply(&self, object: &mut Value, node: Option<Node<'_>>) -> Result<()> {
        match self {
            Patch::Json(patch) => patch.apply(object).map_err(refused),
            Patch::Merge(patch, _) => {
                merge_patch::apply(object, patch);
                Ok(())
            }
            Patch::Strategic(patch, _) => match node {
                Some(node) => {
                    let typed = ["apiVersion", "kind"].map(|field| (field, object[field].clone()));
                    strategic_merge::apply(object, patch, node).map_err(unmerged)?;
                    // Go's structs know what they are, whatever a patch says.
                    typed.into_iter().for_each(|(field, value)| object[field] = value);
                    Ok(())
                }
                None => Ok(()),
            },
        }
    }

    /// What a refusal shows as the value that is wrong: the merged object, or what was to be merged.
    fn shown(&self, object: &Value) -> String {
        match self {
            Patch::Strategic(patch, _) => go_text::plain(patch),
            _ => object.to_string(),
        }
    }

    fn complaints(&self) -> &[String] {
        match self {
            Patch::Json(patch) => &patch.complaints,
            Patch::Merge(_, complaints) | Patch::Strategic(_, complaints) => complaints,
        }
    }
}

fn refused(error: PatchError) -> Status {
    match &error {
        PatchError::Malformed(why) => Status::bad_request(why),
        PatchError::TooManyOperations(_) => Status::too_much(error.to_string()),
        PatchError::Inapplicable(_) | PatchError::TestFailed(_) => Status::unprocessable(),
    }
}

// apiserver/pkg/endpoints/handlers/patch.go, interpretStrategicMergePatchError
fn unmerged(error: MergeError) -> Status {
    match error {
        MergeError::Malformed(why) => Status::bad_request(why),
        MergeError::Unprocessable(_) => Status::unprocessable(),
        MergeError::Unfit(why) => Status::without_reason(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

/// What Go says of a value that does not fit, where it makes structs of maps and not of JSON.
// apimachinery/pkg/runtime/converter.go, fromUnstructured
fn unrestored(why: &str) -> String {
    let parts = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| rest.rsplit_once(" of type "));
    let Some((given, wanted)) = parts else {
        return why.to_owned();
    };
    let given = match given.split(' ').next().unwrap_or_default() {
        "object" => "map",
        "array" => "slice",
        "number" if given.split(' ').nth(1).is_some_and(|number| number.contains(['.', 'e', 'E'])) => "float64",
        "number" => "int64",
        other => other,
    };
    match wanted {
        "bool" | "string" if given.ends_with("64") => format!("cannot convert {given} to {wanted}"),
        "bool" | "int32" | "int64" | "float64" | "string" => format!("unrecognized type: {wanted}"),
        _ if wanted.starts_with("[]") => format!("cannot restore slice from {given}"),
        _ if wanted.starts_with("map[") => format!("cannot restore map from {given}"),
        _ => format!("cannot restore struct from: {given}"),
    }
}

/// Makes the patched object one of its kind again: decoded, defaulted, with the name and namespace of the path.
fn fit(request: &ResourceRequest, options: &WriteOptions, patch: &Patch, live: &Value, object: Value) -> Result<Value> {
    let invalid = |why: String| {
        // made again, since nobody needs it as long as all is well
        let mut merged = live.clone();
        if let Err(status) = patch.apply(&mut merged, request.kind.node()) {
            return status;
        }
        let violation = Violation::invalid("patch", patch.shown(&merged).as_str(), &why);
        Status::invalid("", "", "", causes(vec![violation]))
    };
    let unfit = |why: String| match patch {
        Patch::Strategic(..) => invalid(unrestored(&why)),
        _ => invalid(why),
    };
    let (mut object, mut complaints) = decode::value(&request.kind, object).map_err(unfit)?;
    complaints.splice(..0, patch.complaints().iter().cloned());
    decode::report(request, options.field_validation, complaints, invalid)?;
    decode::check_namespace(request, &mut object)?;
    decode::check_name(request, &object)?;
    strategy::default(&request.kind, &mut object);
    Ok(object)
}
