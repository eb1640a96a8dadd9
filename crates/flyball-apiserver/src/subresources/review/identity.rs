//! Reviews of who a user is.
// pkg/registry/authentication

use crate::authn::user::User;
use crate::clock;
use crate::request::context::ResourceRequest;
use crate::status::{Result, Status};
use serde_json::{Value, json};

/// Answers a SelfSubjectReview.
pub(super) fn own(request: &ResourceRequest) -> Value {
    let mut review = super::with_status(request, json!({"userInfo": user_info(&request.user)}));
    review["metadata"]["creationTimestamp"] = clock::seconds(request.server.clock().now()).into();
    review
}

/// Answers a TokenReview. No token is valid, because the server has no authenticator of tokens.
pub(super) fn of_token(spec: &Value) -> Result<Value> {
    if spec["token"].as_str().unwrap_or_default().is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(json!({"user": {}}))
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.clone().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = user.groups.clone().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
