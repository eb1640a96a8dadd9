//! AdmissionReview as it comes and goes. What the API server sends is read as JSON, so that nothing of an object is lost.

use crate::webhook::Violations;
use crate::webhook::admission::Undecodable;
use crate::{Error, Outcome};
use k8s_openapi::{ByteString, api::authentication::v1::UserInfo};
use kube::core::admission::Operation;
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// The API server cuts longer ones.
const MAX_WARNING_LENGTH: usize = 256;

/// The request of a review.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) uid: String,
    pub(crate) kind: GroupVersionKind,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    pub(crate) operation: Operation,
    #[serde(default)]
    pub(crate) user_info: UserInfo,
    #[serde(default)]
    pub(crate) object: Option<Value>,
    #[serde(default)]
    pub(crate) old_object: Option<Value>,
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
    #[serde(default)]
    pub(crate) sub_resource: Option<String>,
    /// All of it, for what has no field here.
    #[serde(skip)]
    pub(crate) all: Value,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct GroupVersionKind {
    #[serde(default)]
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// Reads a review, or says why it is none.
pub(crate) fn read(body: &[u8]) -> Result<Request, String> {
    let mut review: Value = serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let (version, kind) = (review["apiVersion"].as_str(), review["kind"].as_str());
    if (version, kind) != (Some(API_VERSION), Some(KIND)) {
        let (version, kind) = (version.unwrap_or_default(), kind.unwrap_or_default());
        return Err(format!("expected {KIND} of {API_VERSION}, not {kind:?} of {version:?}"));
    }
    let request = review["request"].take();
    if !request.is_object() {
        return Err("the review has no request".into());
    }
    let read = Request::deserialize(&request).map_err(|error| format!("request: {error}"))?;
    if read.uid.is_empty() {
        return Err("request.uid: must not be empty".into());
    }
    Ok(Request { all: request, ..read })
}

/// What a webhook answers to a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The Status of a refusal; none if the request is admitted.
    pub(crate) refusal: Option<Value>,
    pub(crate) patch: Vec<Value>,
    pub(crate) warnings: Vec<String>,
    pub(crate) audit_annotations: Vec<(String, String)>,
}

impl Answer {
    pub(crate) fn to_review(&self, uid: &str) -> Value {
        let mut response = json!({ "uid": uid, "allowed": self.refusal.is_none() });
        if let Some(status) = &self.refusal {
            response["status"] = status.clone();
        } else if !self.patch.is_empty() {
            let patch = serde_json::to_vec(&self.patch).expect("a patch is JSON");
            response["patch"] = json!(ByteString(patch));
            response["patchType"] = "JSONPatch".into();
        }
        if !self.warnings.is_empty() {
            response["warnings"] = self.warnings.iter().map(|warning| shortened(warning)).collect();
        }
        if !self.audit_annotations.is_empty() {
            let annotations = self.audit_annotations.iter().cloned();
            response["auditAnnotations"] = annotations.map(|(key, value)| (key, Value::from(value))).collect();
        }
        json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
    }
}

fn shortened(warning: &str) -> String {
    let line: String = warning.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(MAX_WARNING_LENGTH - 1) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The Status of a refusal that an error is; the error itself if the webhook has failed, and so has no answer.
pub(crate) fn refusal(error: Error, request: &Request) -> Result<Value, Error> {
    let GroupVersionKind { group, kind, .. } = &request.kind;
    if let Some(violations) = error.find::<Violations>() {
        let qualified = match group.is_empty() {
            true => kind.clone(),
            false => format!("{kind}.{group}"),
        };
        return Ok(json!({
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": format!("{qualified} {:?} is invalid: {error}", request.name),
            "details": { "name": request.name, "group": group, "kind": kind, "causes": violations.causes() },
        }));
    }
    let (code, reason) = match error.outcome() {
        Outcome::Permanent if error.find::<Undecodable>().is_some() => (422, "Invalid"),
        Outcome::Permanent => (403, "Forbidden"),
        _ => return Err(error),
    };
    Ok(json!({ "status": "Failure", "code": code, "reason": reason, "message": error.to_string() }))
}
