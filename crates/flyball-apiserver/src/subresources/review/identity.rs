//! Reviews of who a user is.
// pkg/registry/authentication

use crate::authn;
use crate::authn::token::{self, Authenticated, ISSUER};
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

/// Answers a TokenReview.
// pkg/registry/authentication/tokenreview/storage.go
pub(super) async fn of_token(request: &ResourceRequest, spec: &Value) -> Result<Value> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted = spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut wanted: Vec<String> = wanted.map(str::to_owned).collect();
    if wanted.is_empty() {
        wanted.push(ISSUER.to_owned());
    }
    match token::authenticate(&request.server, token, &wanted).await {
        Ok(Authenticated { user, audiences }) => {
            let user = user_info(&authn::with_authenticated_group(user));
            Ok(json!({"authenticated": true, "user": user, "audiences": audiences}))
        }
        Err(error) => Ok(json!({"user": {}, "error": error})),
    }
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
