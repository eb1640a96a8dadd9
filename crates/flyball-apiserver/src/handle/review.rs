//! POST of a question instead of an object: may I?

use super::create;
use super::decode;
use crate::answer::Answer;
use crate::call::Call;
use crate::options::WriteOptions;
use crate::status::{Result, Status};
use http::StatusCode;
use serde_json::json;

/// Groups whose kinds are questions: nothing of theirs is stored.
pub(super) fn is_question(call: &Call) -> bool {
    matches!(&*call.kind.resource.group, "authorization.k8s.io" | "authentication.k8s.io")
}

/// Answers what the one who asks may do: everything, since nobody else gets this far.
pub(super) fn answer(call: &Call) -> Result<Answer> {
    let options = WriteOptions::create(&call.query, &call.headers)?;
    if !call.kind.is("authorization.k8s.io", "selfsubjectaccessreviews") {
        return Err(Status::method_not_supported(&call.kind.resource, "create"));
    }
    let mut object = decode::object(call, &options)?;
    create::own(call, &options, &mut object);
    object["status"] = json!({"allowed": true});
    Ok(Answer::Other { code: StatusCode::CREATED, object })
}
