//! Reviews of what a user may do.
// pkg/registry/authorization, pkg/apis/authorization/validation

use crate::authn::user::User;
use crate::authz::{Access, Decision, ResourceAccess, Target};
use crate::registry::object;
use crate::request::context::ResourceRequest;
use crate::request::options::causes;
use crate::response::ApiResponse;
use crate::status::{Result, Status};
use flyball_schema::violation::Violation;
use serde_json::{Value, json};

/// Answers a SelfSubjectAccessReview.
pub(super) async fn of_self(request: &ResourceRequest, review: &Value) -> Result<Value> {
    let mut violations = attributes_violations(&review["spec"]);
    violations.extend(metadata_violation(review, &["managedFields"], "must be empty"));
    refuse(violations)?;
    decide(request, &request.user, &review["spec"]).await
}

/// Answers a SubjectAccessReview.
pub(super) async fn of_subject(request: &ResourceRequest, review: &Value) -> Result<Value> {
    let mut violations = subject_violations(&review["spec"]);
    violations.extend(metadata_violation(review, &["managedFields"], "must be empty"));
    refuse(violations)?;
    decide(request, &subject(&review["spec"]), &review["spec"]).await
}

/// Answers a LocalSubjectAccessReview.
pub(super) async fn of_subject_in_namespace(request: &ResourceRequest, review: &Value) -> Result<Value> {
    let spec = &review["spec"];
    let mut violations = subject_violations(spec);
    let except = ["managedFields", "namespace"];
    violations.extend(metadata_violation(review, &except, "must be empty except for namespace"));
    let namespace = object::text(review, "namespace");
    if let Some(attributes) = spec.get("resourceAttributes") {
        let own = text(attributes, "namespace");
        if own != namespace {
            let path = "spec.resourceAttributes.namespace";
            violations.push(Violation::invalid(path, own, "must match metadata.namespace"));
        }
    }
    if let Some(attributes) = spec.get("nonResourceAttributes") {
        let why = "disallowed on this kind of request";
        violations.push(Violation::invalid("spec.nonResourceAttributes", go_fields(attributes), why));
    }
    refuse(violations)?;
    decide(request, &subject(spec), spec).await
}

/// Answers a SelfSubjectRulesReview.
// pkg/registry/authorization/selfsubjectrulesreview/rest.go
pub(super) async fn rules(request: &ResourceRequest, review: &Value) -> Result<ApiResponse> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    if request.user.is_master() {
        resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    let (rules, error) = request.server.rbac().read(request.store()).await?.rules_for(&request.user, namespace);
    for rule in rules {
        if !rule.resources.is_empty() {
            let mut shown = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                shown["resourceNames"] = rule.resource_names.into();
            }
            resources.push(shown);
        }
        if !rule.non_resource_urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
        }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    if let Some(error) = error {
        status["evaluationError"] = error.into();
    }
    let mut answer = super::with_status(request, status);
    answer["spec"] = json!({});
    Ok(super::created(answer))
}

async fn decide(request: &ResourceRequest, user: &User, spec: &Value) -> Result<Value> {
    let (verb, target) = match spec.get("resourceAttributes") {
        Some(attributes) => (
            text(attributes, "verb"),
            Target::Resource(ResourceAccess {
                namespace: text(attributes, "namespace"),
                group: text(attributes, "group"),
                resource: text(attributes, "resource"),
                subresource: text(attributes, "subresource"),
                name: text(attributes, "name"),
            }),
        ),
        None => {
            let attributes = &spec["nonResourceAttributes"];
            (text(attributes, "verb"), Target::Path(text(attributes, "path")))
        }
    };
    let Decision { allowed, reason } = request.server.authorize(&Access { user, verb, target }).await?;
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    Ok(status)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// The user that a review is about.
fn subject(spec: &Value) -> User {
    let texts = |value: &Value| -> Vec<String> {
        let values = value.as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.to_lowercase(), texts(values))).collect(),
    }
}

fn subject_violations(spec: &Value) -> Vec<Violation> {
    let mut violations = attributes_violations(spec);
    let groups = spec["groups"].as_array().map_or(0, Vec::len);
    if text(spec, "user").is_empty() && groups == 0 {
        let detail = "at least one of user or group must be specified";
        violations.push(Violation::invalid("spec.user", "", detail));
    }
    violations
}

fn attributes_violations(spec: &Value) -> Vec<Violation> {
    match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (Some(_), Some(attributes)) => vec![Violation::invalid(
            "spec.nonResourceAttributes",
            go_fields(attributes),
            "cannot be specified in combination with resourceAttributes",
        )],
        (None, None) => vec![Violation::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )],
        _ => Vec::new(),
    }
}

/// The attributes of a path as Go prints their fields, which have no JSON names there.
fn go_fields(attributes: &Value) -> Value {
    json!({"Path": text(attributes, "path"), "Verb": text(attributes, "verb")})
}

fn metadata_violation(review: &Value, except: &[&str], why: &str) -> Option<Violation> {
    let metadata = object::metadata(review);
    let is_empty = metadata.keys().all(|key| except.contains(&key.as_str()));
    (!is_empty).then(|| Violation::invalid("metadata", Value::Object(metadata.clone()), why))
}

fn refuse(violations: Vec<Violation>) -> Result<()> {
    match violations.is_empty() {
        true => Ok(()),
        // The real server leaves the kind out, too.
        false => Err(Status::invalid("authorization.k8s.io", "", "", causes(violations))),
    }
}
