//! Validation rules in CEL: checked when their definition is written, and on every write of an object.

use crate::ask::{Answer, Server};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DISKS: &str = "/apis/rules.example.dev/v1/namespaces/default/disks";

fn definition(rules: Value) -> Value {
    let size = json!({"type": "integer"});
    let spec = json!({"type": "object", "properties": {"size": size, "name": {"type": "string", "maxLength": 9}},
        "x-kubernetes-validations": rules});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object",
        "properties": {"used": size},
        "x-kubernetes-validations": [{"rule": "self.used >= 0", "reason": "FieldValueForbidden", "fieldPath": ".used"}]}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "disks.rules.example.dev"},
        "spec": {"group": "rules.example.dev", "scope": "Namespaced", "names": {"plural": "disks", "kind": "Disk"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}}]}
    })
}

fn disk(spec: Value) -> Value {
    json!({"apiVersion": "rules.example.dev/v1", "kind": "Disk", "metadata": {"name": "d"}, "spec": spec})
}

async fn defined(rules: Value) -> Server {
    let server = Server::start().await;
    let created = server.post(DEFINITIONS, definition(rules)).await;
    assert_eq!(created.code, 201, "{}", created.body);
    server
}

fn cause(answer: &Answer) -> (u16, String) {
    let cause = &answer.body["details"]["causes"][0];
    let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
    (answer.code, format!("{} {} {}", text("field"), text("reason"), text("message")))
}

fn refused(text: &str) -> (u16, String) {
    (422, text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn rules_are_checked_on_create_update_apply_and_status() {
    let server = defined(json!([
        {"rule": "self.size > 0", "messageExpression": "'size is %d'.format([self.size])"},
        {"rule": "self.size >= oldSelf.size", "message": "disks do not shrink"},
    ]))
    .await;
    let path = format!("{DISKS}/d");

    let created = server.post(DISKS, disk(json!({"size": 0}))).await;
    assert_eq!(cause(&created), refused("spec FieldValueInvalid Invalid value: size is 0"));
    let created = server.post(DISKS, disk(json!({"size": 5}))).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let size = |size: i64| json!({"spec": {"size": size}});
    let updated = server.patch("merge-patch+json", &path, size(4)).await;
    assert_eq!(cause(&updated), refused("spec FieldValueInvalid Invalid value: disks do not shrink"));
    let applied = server
        .patch("apply-patch+yaml", &format!("{path}?fieldManager=a&force=true"), disk(json!({"size": 3})))
        .await;
    assert_eq!(cause(&applied), refused("spec FieldValueInvalid Invalid value: disks do not shrink"));
    let status = json!({"status": {"used": -1}});
    let status = server.patch("merge-patch+json", &format!("{path}/status"), status).await;
    assert_eq!(
        cause(&status),
        refused("status.used FieldValueForbidden Forbidden: failed rule: self.used >= 0")
    );
    assert_eq!(server.patch("merge-patch+json", &path, size(6)).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_rule_does_not_compile_is_refused_with_the_place() {
    let server = Server::start().await;

    let refused = server.post(DEFINITIONS, definition(json!([{"rule": "self.size > 'a'"}]))).await;

    assert_eq!(refused.code, 422);
    let cause = &refused.body["details"]["causes"][0];
    let path = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!(cause["field"], path);
    let why = "found no matching overload for '_>_' applied to '(int, string)'\n | self.size > 'a'\n | ..........^";
    let message = cause["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("compilation failed: ERROR: <input>:1:11: {why}")), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_costs_too_much_is_refused_by_its_factor() {
    let server = Server::start().await;
    let mut expensive = definition(json!([]));
    let spec = &mut expensive["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["names"] = json!({"type": "array", "items": {"type": "string"}});
    spec["x-kubernetes-validations"] = json!([{"rule": "self.names.all(a, self.names.all(b, a == b))"}]);

    let refused = server.post(DEFINITIONS, expensive).await;

    assert_eq!(refused.code, 422);
    let message = refused.body["details"]["causes"][0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_new_rule_refuses_and_did_not_change_is_a_warning() {
    let server = defined(json!([])).await;
    assert_eq!(server.post(DISKS, disk(json!({"size": 0, "name": "a"}))).await.code, 201);
    let mut strict = definition(json!([]));
    let spec = &mut strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["size"]["x-kubernetes-validations"] = json!([{"rule": "self > 0"}]);
    let path = format!("{DEFINITIONS}/disks.rules.example.dev");
    let patch = json!({"spec": {"versions": strict["spec"]["versions"]}});
    assert_eq!(server.patch("merge-patch+json", &path, patch).await.code, 200);

    let patch =
        async |spec: Value| server.patch("merge-patch+json", &format!("{DISKS}/d"), json!({"spec": spec})).await;
    let other = patch(json!({"name": "b"})).await;
    let same = patch(json!({"size": -1})).await;

    assert_eq!(other.code, 200, "{}", other.body);
    assert_eq!(other.headers["warning"], "299 - \"spec.size: Invalid value: 0: failed rule: self > 0\"");
    assert_eq!(
        cause(&same),
        refused("spec.size FieldValueInvalid Invalid value: -1: failed rule: self > 0")
    );
}
