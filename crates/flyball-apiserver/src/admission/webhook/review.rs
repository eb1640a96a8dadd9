//! AdmissionReview: what a webhook is sent, and what its answer has to be.
// apiserver/pkg/admission/plugin/webhook/request/admissionreview.go

use crate::admission::Attributes;
use crate::admission::attributes::Versioned;
use crate::admission::matching::Match;
use crate::webhook;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

/// A version of AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V1beta1,
}

/// Whether the webhook that answers may change the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Mutating,
    Validating,
}

impl Version {
    /// The first version that a webhook and this server understand.
    pub fn choose(understood: &[String]) -> Option<Version> {
        understood.iter().find_map(|version| match version.as_str() {
            "v1" => Some(Version::V1),
            "v1beta1" => Some(Version::V1beta1),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V1beta1 => "v1beta1",
        }
    }
}

/// A review that is to be answered.
pub(super) struct Review {
    version: Version,
    uid: String,
    pub body: Bytes,
}

/// A valid answer.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub allowed: bool,
    /// `status`: why the write is refused.
    pub result: Value,
    /// The JSON patch; empty if there is none.
    pub patch: Vec<u8>,
    pub patch_type: String,
    pub warnings: Vec<String>,
    pub audit_annotations: Vec<(String, String)>,
}

impl Review {
    /// The review of a write by a webhook that matches it.
    pub fn new(version: Version, attributes: &Attributes<'_>, matched: &Match, versioned: &Versioned<'_>) -> Review {
        let uid = uuid::Uuid::new_v4().to_string();
        let mut request = attributes.admission_request(matched);
        request["uid"] = uid.as_str().into();
        request["object"] = versioned.object().clone();
        request["oldObject"] = versioned.old().clone();
        let review = json!({"kind": KIND, "apiVersion": format!("{GROUP}/{}", version.name()), "request": request});
        Review { version, uid, body: review.to_string().into() }
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// If it is not an AdmissionReview of the version that was sent.
    pub fn decode(&self, body: &[u8]) -> Result<Value, String> {
        webhook::decode(body, GROUP, self.version.name(), KIND)
    }

    /// Checks an answer that was decoded.
    // VerifyAdmissionResponse
    pub fn verify(&self, step: Step, mut review: Value) -> Result<Answer, String> {
        let response = review["response"].take();
        if response.is_null() {
            return Err("webhook response was absent".to_owned());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let patch = STANDARD.decode(text(&response["patch"]));
        let patch = patch.map_err(|error| format!("invalid response.patch: {error}"))?;
        let mut patch_type = text(&response["patchType"]);
        match self.version {
            Version::V1 => {
                let uid = text(&response["uid"]);
                if uid != self.uid {
                    return Err(format!("expected response.uid={:?}, got {uid:?}", self.uid));
                }
                check_kind(&review)?;
                check_patch(step, &patch, &response["patchType"])?;
            }
            // v1beta1 was never checked.
            Version::V1beta1 if step == Step::Mutating && !patch.is_empty() => patch_type = "JSONPatch".to_owned(),
            Version::V1beta1 => patch_type = String::new(),
        }
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
        Ok(Answer {
            allowed: response["allowed"] == true,
            patch: if step == Step::Mutating { patch } else { Vec::new() },
            patch_type,
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
            audit_annotations: annotations.map(|(key, value)| (key.clone(), text(value))).collect(),
            result: response["status"].clone(),
        })
    }
}

fn check_kind(review: &Value) -> Result<(), String> {
    let (kind, version) = (review["kind"].as_str().unwrap_or_default(), review["apiVersion"].as_str());
    if kind == KIND && version == Some("admission.k8s.io/v1") {
        return Ok(());
    }
    let (group, version) = version.unwrap_or_default().split_once('/').unwrap_or(("", ""));
    Err(format!(
        "expected webhook response of {GROUP}/v1, Kind={KIND}, got {group}/{version}, Kind={kind}"
    ))
}

fn check_patch(step: Step, patch: &[u8], patch_type: &Value) -> Result<(), String> {
    let why = match (step, patch.is_empty(), patch_type) {
        (Step::Mutating, false, Value::Null) => "webhook returned response.patch but not response.patchType",
        (Step::Mutating, true, Value::String(_)) => "webhook returned response.patchType but not response.patch",
        (Step::Mutating, _, Value::String(text)) if text.is_empty() => {
            "webhook returned invalid response.patchType of \"\""
        }
        (Step::Validating, false, _) => "validating webhook may not return response.patch",
        (Step::Validating, true, Value::String(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(version: Version, step: Step, review: Value) -> Result<Answer, String> {
        Review { version, uid: "u".into(), body: Bytes::new() }.verify(step, review)
    }

    fn v1(response: Value) -> Value {
        json!({"kind": KIND, "apiVersion": "admission.k8s.io/v1", "response": response})
    }

    #[test]
    fn answers_are_checked_as_upstream_checks_them() {
        use Step::{Mutating, Validating};
        let patched = json!({"uid": "u", "allowed": true, "patch": "W10=", "patchType": "JSONPatch"});
        for (step, review, expected) in [
            (Validating, v1(Value::Null), "webhook response was absent"),
            (Validating, v1(json!({"uid": "x"})), "expected response.uid=\"u\", got \"x\""),
            (
                Validating,
                json!({"response": {"uid": "u"}}),
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ),
            (Validating, v1(patched.clone()), "validating webhook may not return response.patch"),
            (
                Validating,
                v1(json!({"uid": "u", "patchType": "JSONPatch"})),
                "validating webhook may not return response.patchType",
            ),
            (
                Mutating,
                v1(json!({"uid": "u", "patch": "W10="})),
                "webhook returned response.patch but not response.patchType",
            ),
            (
                Mutating,
                v1(json!({"uid": "u", "patchType": "JSONPatch"})),
                "webhook returned response.patchType but not response.patch",
            ),
            (
                Mutating,
                v1(json!({"uid": "u", "patch": "W10=", "patchType": ""})),
                "webhook returned invalid response.patchType of \"\"",
            ),
        ] {
            assert_eq!(verify(Version::V1, step, review.clone()).unwrap_err(), expected, "{review}");
        }
        assert_eq!(verify(Version::V1, Mutating, v1(patched)).unwrap().patch, b"[]");
    }

    #[test]
    fn answers_of_v1beta1_need_neither_uid_nor_patch_type() {
        let answer = verify(Version::V1beta1, Step::Mutating, json!({"response": {"patch": "W10="}})).unwrap();
        assert_eq!((answer.patch, answer.patch_type.as_str()), (b"[]".to_vec(), "JSONPatch"));
    }
}
