//! SelfSubjectAccessReview, SubjectAccessReview and TokenReview: answered, never stored.

use crate::endpoints::{Subresource, decode};
use crate::registry::field_manager::FieldManager;
use crate::request::context::ResourceRequest;
use crate::request::options::{WriteOptions, causes};
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use flyball_schema::violation::Violation;
use http::StatusCode;
use serde_json::{Value, json};

/// Answers by the rules that this server itself goes by: who is in `system:masters` may do everything, others are not let in,
/// and no token is known.
pub(crate) fn answer(request: &ResourceRequest) -> Result<ApiResponse> {
    let options = WriteOptions::create(&request.info.query, &request.headers)?;
    let question = &*request.kind.resource.plural;
    if !["selfsubjectaccessreviews", "subjectaccessreviews", "tokenreviews"].contains(&question) {
        return Err(Status::method_not_supported(&request.kind.resource, "create"));
    }
    let mut object = decode::object(request, &options)?;
    let status = match question {
        "subjectaccessreviews" => may_they(&object["spec"])?,
        "tokenreviews" => who_is_this(&object["spec"])?,
        _ => json!({"allowed": true}),
    };
    FieldManager::of(request, Subresource::Whole, &options).update(None, &mut object);
    object["status"] = status;
    Ok(ApiResponse::Other { code: StatusCode::CREATED, object })
}

/// pkg/apis/authorization/validation, `ValidateSubjectAccessReviewSpec`.
fn may_they(spec: &Value) -> Result<Value> {
    let mut violations = Vec::new();
    match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (Some(_), Some(attributes)) => violations.push(Violation::invalid(
            "spec.nonResourceAttributes",
            attributes.clone(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => violations.push(Violation::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let groups = spec["groups"].as_array().map_or(&[][..], Vec::as_slice);
    if spec["user"].as_str().unwrap_or_default().is_empty() && groups.is_empty() {
        let detail = "at least one of user or group must be specified";
        violations.push(Violation::invalid("spec.user", "", detail));
    }
    if !violations.is_empty() {
        // The real server leaves the kind out, too.
        return Err(Status::invalid("authorization.k8s.io", "", "", causes(violations)));
    }
    Ok(json!({"allowed": groups.iter().any(|group| group == "system:masters")}))
}

/// pkg/registry/authentication/tokenreview, `Create`, of a server that has no authenticator of tokens.
fn who_is_this(spec: &Value) -> Result<Value> {
    if spec["token"].as_str().unwrap_or_default().is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(json!({"user": {}}))
}
