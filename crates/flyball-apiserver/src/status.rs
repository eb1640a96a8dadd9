//! `Status`: every error of the API, with Kubernetes' reasons and messages. When to return which is left to the callers.

use flyball_schema::resource::Resource;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;

/// The result of an endpoint or a part of one.
pub type Result<T, E = Status> = std::result::Result<T, E>;

/// Kubernetes' `Status`, as an error and as a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: ListMeta,
    status: Outcome,
    /// The message for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The reason for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The object that the error is about, and its causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP status code.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    continue_: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Outcome {
    Success,
    Failure,
}

/// Kubernetes' `StatusReason`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is the reason of its name")]
pub enum Reason {
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    ServerTimeout,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
    /// A reason that a webhook gives.
    #[serde(untagged)]
    Other(Box<str>),
}

/// Kubernetes' `StatusDetails`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The object's resource or kind, as the reason has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// The seconds after which to retry.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u16,
}

/// Kubernetes' `StatusCause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Cause {
    /// The reason for programs, such as `FieldValueRequired`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field, such as `spec.ports[0].name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// Failures that concern an object or a resource.
impl Status {
    /// 404: there is no such object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::failure(StatusCode::NOT_FOUND, Reason::NotFound, message).about(resource, name)
    }

    /// 409: there is such an object already.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::failure(StatusCode::CONFLICT, Reason::AlreadyExists, message).about(resource, name)
    }

    /// 409: every name generated for the object was taken.
    pub fn no_name_left(resource: &Resource, name: &str) -> Self {
        let mut status = Self::already_exists(resource, name);
        status
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        status.retry_after(1)
    }

    /// 403, for the reason given.
    pub fn forbidden(resource: &Resource, name: &str, why: impl fmt::Display) -> Self {
        let subject = resource.qualified();
        let message = match name {
            "" => format!("{subject} is forbidden: {why}"),
            _ => format!("{subject} {name:?} is forbidden: {why}"),
        };
        Self::failure(StatusCode::FORBIDDEN, Reason::Forbidden, message).about(resource, name)
    }

    /// 403: the user may not do that with the resource; group and resource are empty for other paths.
    // apimachinery/pkg/api/errors/errors.go, NewForbidden
    pub fn access_denied(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = match (qualified(resource, group).as_str(), name) {
            ("", _) => format!("forbidden: {why}"),
            (subject, "") => format!("{subject} is forbidden: {why}"),
            (subject, _) => format!("{subject} {name:?} is forbidden: {why}"),
        };
        let details = Details {
            name: name.into(),
            group: group.into(),
            kind: resource.into(),
            ..Details::default()
        };
        Self::failure(StatusCode::FORBIDDEN, Reason::Forbidden, message).with(details)
    }

    /// 403: a PodDisruptionBudget in a state that permits no eviction.
    pub fn budget_forbidden(name: &str, why: &str) -> Self {
        let message = format!("poddisruptionbudget.policy {name:?} is forbidden: {why}");
        let details = Details {
            name: name.into(),
            group: "policy".into(),
            kind: "poddisruptionbudget".into(),
            ..Details::default()
        };
        Self::failure(StatusCode::FORBIDDEN, Reason::Forbidden, message).with(details)
    }

    /// 409, for the reason given.
    pub fn conflict(resource: &Resource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::failure(StatusCode::CONFLICT, Reason::Conflict, message).about(resource, name)
    }

    /// 409: the object does not meet the preconditions of its deletion.
    pub fn precondition_failed(resource: &Resource, name: &str, why: impl fmt::Display) -> Self {
        let mut status = Self::conflict(resource, name, "");
        status.message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            qualified(&resource.kind, &resource.group)
        );
        status.details.get_or_insert_default().kind = resource.kind.to_string();
        status
    }

    /// 409, for the reason given, about an object whose kind is not that of the request.
    pub fn conflict_about(group: &str, kind: &str, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(kind, group));
        let details = Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            ..Details::default()
        };
        Self::failure(StatusCode::CONFLICT, Reason::Conflict, message).with(details)
    }

    /// 409: the object has changed since the client read it.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 409: server-side apply conflicts with other field managers.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        let details = Details { causes, ..Details::default() };
        Self::failure(StatusCode::CONFLICT, Reason::Conflict, message).with(details)
    }

    /// 422: the object is invalid.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let subject = qualified(kind, group);
        let message = match aggregate(&causes) {
            None => format!("{subject} {name:?} is invalid"),
            Some(errors) => format!("{subject} {name:?} is invalid: {errors}"),
        };
        let details = Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            causes,
            ..Details::default()
        };
        Self::failure(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message).with(details)
    }

    /// 405: the resource does not support the verb.
    pub fn method_not_supported(resource: &Resource, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {:?}", resource.qualified());
        Self::failure(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodNotAllowed, message).about(resource, "")
    }

    /// 500: the store did not answer.
    pub fn server_timeout(resource: &Resource, operation: &str) -> Self {
        let subject = resource.qualified();
        let message = format!(
            "The {operation} operation against {subject} could not be completed at this time, please try again."
        );
        Self::failure(StatusCode::INTERNAL_SERVER_ERROR, Reason::ServerTimeout, message)
            .about(resource, operation)
            .retry_after(2)
    }

    /// 200: the object is deleted.
    pub fn deleted(resource: &Resource, name: &str, uid: &str) -> Self {
        let mut status = Self::success();
        status.details = Some(Box::new(Details { uid: uid.into(), ..details(resource, name) }));
        status
    }
}

/// Failures that concern the request.
impl Status {
    /// 400, for the reason given.
    pub fn bad_request<T: Into<String>>(message: T) -> Self {
        Self::failure(StatusCode::BAD_REQUEST, Reason::BadRequest, message)
    }

    /// 401: the credentials are not valid.
    pub fn unauthorized() -> Self {
        Self::failure(StatusCode::UNAUTHORIZED, Reason::Unauthorized, "Unauthorized")
    }

    /// 404: nothing is served at that path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        Self::failure(StatusCode::NOT_FOUND, Reason::NotFound, message).with(Details::default())
    }

    /// 405: the path does not support the method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::failure(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodNotAllowed, message).with(Details::default())
    }

    /// 406: the server can produce none of the media types in `Accept`.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::failure(StatusCode::NOT_ACCEPTABLE, Reason::NotAcceptable, message)
    }

    /// 406: a path of built-in kinds has none of the representations that `Accept` names.
    pub fn no_representation(representations: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", representations.join(", "));
        Self::failure(StatusCode::NOT_ACCEPTABLE, Reason::NotAcceptable, message).with(Details::default())
    }

    /// 406: `Accept` asks for a list of an object, or for an object of a list.
    pub fn wrong_shape(wanted: &str, why: impl fmt::Display) -> Self {
        let message = format!("you requested {wanted}, but the requested object is {why}");
        Self::failure(StatusCode::NOT_ACCEPTABLE, Reason::NotAcceptable, message)
    }

    /// 410: the resource version asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::GONE, Reason::Expired, message)
    }

    /// 410: the rest of a list is no longer kept; the token continues at the latest revision.
    // apiserver/pkg/storage/etcd3/errors.go, handleCompactedErrorForContinue
    pub fn expired_continue(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
             You can start a new list without the continue parameter, or use the continue token in this response to \
             retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - \
             objects that were created, modified, or deleted between the time the first chunk was returned and now may \
             show up in the list.";
        let mut status = Self::expired(message);
        status.metadata.continue_ = token;
        status
    }

    /// 413: the request exceeds a limit.
    pub fn too_much(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::PAYLOAD_TOO_LARGE, Reason::RequestEntityTooLarge, message)
    }

    /// 413: the body exceeds that many bytes.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::failure(StatusCode::PAYLOAD_TOO_LARGE, Reason::RequestEntityTooLarge, message)
    }

    /// 415: the body is in none of these encodings.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::UnsupportedMediaType, message)
    }

    /// 422: a patch does not apply.
    // apimachinery/pkg/api/errors/errors.go, NewGenericServerResponse
    pub fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::failure(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message).with(Details::default())
    }

    /// 415: the route of a built-in kind takes no such patch.
    pub fn unrouted_media_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::failure(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::UnsupportedMediaType, message)
            .with(Details::default())
    }

    /// 429: the client is to retry after that many seconds.
    pub fn too_many_requests(message: impl Into<String>, seconds: u16) -> Self {
        Self::failure(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, message).retry_after(seconds)
    }

    /// 500, for the reason given.
    pub fn internal(why: impl fmt::Display) -> Self {
        let causes = vec![Cause { message: why.to_string(), ..Cause::default() }];
        let message = format!("Internal error occurred: {why}");
        let details = Details { causes, ..Details::default() };
        Self::failure(StatusCode::INTERNAL_SERVER_ERROR, Reason::InternalError, message).with(details)
    }

    /// 503, for the reason given.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, message)
    }

    /// 503: the definition of a custom resource changed before the write was committed.
    pub fn definition_changed() -> Self {
        let message = "the CustomResourceDefinition changed while the request was handled, please try again";
        Self::service_unavailable(message).retry_after(1)
    }

    /// 504: the request did not finish in time.
    pub fn timeout(why: impl fmt::Display) -> Self {
        let message = format!("Timeout: {why}");
        Self::failure(StatusCode::GATEWAY_TIMEOUT, Reason::Timeout, message).with(Details::default())
    }

    /// A failure of the store: 503 while it accepts no writes, 504 if it does not answer, both with `Retry-After`; else
    /// 500. Logs the failure with its sources.
    pub fn store_failed(error: flyball_store::Error) -> Self {
        use flyball_store::Error;
        tracing::error!(error = chain(&error), "the store failed");
        match error {
            Error::Unavailable { .. } => Self::timeout(error).retry_after(1),
            Error::NotWritten { .. }
            | Error::Write { .. }
            | Error::Full { .. }
            | Error::ReadOnly { .. }
            | Error::Closed => Self::service_unavailable(error.to_string()).retry_after(1),
            _ => Self::internal(error),
        }
    }

    /// 504: the requested resource version is in the future.
    pub fn resource_version_too_large(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::failure(StatusCode::GATEWAY_TIMEOUT, Reason::Timeout, message)
            .with(details)
            .retry_after(1)
    }
}

/// Construction and access.
impl Status {
    /// A failure of any code and reason.
    pub fn failure(code: StatusCode, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: Outcome::Failure,
            message: message.into(),
            reason: Some(reason),
            code: code.as_u16(),
            ..Self::success()
        }
    }

    /// A failure without a reason, as Kubernetes has some.
    pub fn without_reason(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status: Outcome::Failure,
            message: message.into(),
            code: code.as_u16(),
            ..Self::success()
        }
    }

    /// 201, without an object.
    pub fn created() -> Self {
        Self { code: StatusCode::CREATED.as_u16(), ..Self::success() }
    }

    fn success() -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta::default(),
            status: Outcome::Success,
            message: String::new(),
            reason: None,
            details: None,
            code: 0,
        }
    }

    /// Replaces the details.
    pub fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Sets the seconds after which to retry.
    pub fn retry_after(mut self, seconds: u16) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    fn about(self, resource: &Resource, name: &str) -> Self {
        self.with(details(resource, name))
    }

    /// The code of the response.
    pub fn http_code(&self) -> StatusCode {
        match self.code {
            0 => StatusCode::OK,
            code => StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }

    /// The value of the header `Retry-After`, if there is one.
    pub fn retry_after_seconds(&self) -> Option<u16> {
        self.details
            .as_ref()
            .map(|details| details.retry_after_seconds)
            .filter(|seconds| *seconds > 0)
    }

    /// The body as JSON.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a status has nothing that JSON lacks")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// An error and its sources in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

fn details(resource: &Resource, name: &str) -> Details {
    Details {
        name: name.into(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..Details::default()
    }
}

fn qualified(kind: &str, group: &str) -> String {
    match group {
        "" => kind.to_owned(),
        _ => format!("{kind}.{group}"),
    }
}

/// `a`, or `[a, b]`: each sentence once, as apimachinery's `ErrorList.ToAggregate` and `Aggregate.Error` have it.
fn aggregate(causes: &[Cause]) -> Option<String> {
    let mut seen = HashSet::new();
    let sentences: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .filter(|sentence| seen.insert(sentence.clone()))
        .collect();
    match &sentences[..] {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployments() -> Resource {
        Resource {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            list_kind: "DeploymentList".into(),
            plural: "deployments".into(),
            singular: "deployment".into(),
            short_names: vec![],
            categories: vec![],
            namespaced: true,
            verbs: vec![],
            subresources: vec![],
            storage_version_hash: None,
            schema: None,
        }
    }

    fn cause(field: &str, message: &str) -> Cause {
        Cause {
            reason: "FieldValueInvalid".into(),
            message: message.into(),
            field: field.into(),
        }
    }

    #[test]
    fn a_missing_object_is_named_with_its_group() {
        let status = Status::not_found(&deployments(), "web");

        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "deployments.apps \"web\" not found", "reason": "NotFound",
            "details": {"name": "web", "group": "apps", "kind": "deployments"}, "code": 404
        });
        assert_eq!(status.to_value(), expected);
        assert_eq!(status.http_code(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn one_violation_stands_alone_and_several_in_brackets_each_once() {
        let one = Status::invalid("apps", "Deployment", "web", vec![cause("spec", "no")]);
        let same = cause("spec.a", "no");
        let many = Status::invalid("", "Pod", "web", vec![same.clone(), same, cause("spec.b", "never")]);

        assert_eq!(one.message, r#"Deployment.apps "web" is invalid: spec: no"#);
        assert_eq!(many.message, r#"Pod "web" is invalid: [spec.a: no, spec.b: never]"#);
        assert_eq!(many.details.unwrap().causes.len(), 3);
    }

    #[test]
    fn a_name_that_could_not_be_generated_asks_to_try_again() {
        let status = Status::no_name_left(&deployments(), "web-");

        assert_eq!(status.retry_after_seconds(), Some(1));
        assert!(
            status
                .message
                .ends_with("already exists, the server was not able to generate a unique name for the object")
        );
    }

    #[test]
    fn success_has_no_code_but_answers_with_200() {
        let status = Status::deleted(&deployments(), "web", "u-1");

        assert_eq!(status.http_code(), StatusCode::OK);
        let details = json!({"name": "web", "group": "apps", "kind": "deployments", "uid": "u-1"});
        assert_eq!(
            status.to_value(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
        );
    }
}
