//! Entries of `/scale`, as a kube-apiserver v1.36.4 was seen to keep them.

use flyball_schema::managed_fields::{scale_entries, scaled_entries};
use serde_json::{Value, json};

const PATHS: [(&str, &str); 1] = [("apps/v1", "spec.replicas")];
const TIME: &str = "2026-01-01T00:00:00Z";

fn object(entries: &[Value]) -> Value {
    json!({"metadata": {"managedFields": entries}})
}

fn entry(manager: &str, operation: &str, api_version: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": api_version,
        "time": TIME, "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

/// An entry that came by way of `/scale`, which loses its time.
fn scaled(manager: &str, operation: &str, api_version: &str) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": api_version, "subresource": "scale",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
    })
}

#[test]
fn a_scale_shows_who_owns_the_replicas() {
    let deployment = object(&[
        entry("one", "Apply", "apps/v1", json!({"f:spec": {"f:replicas": {}, "f:selector": {}}})),
        entry("two", "Apply", "apps/v1", json!({"f:metadata": {"f:labels": {"f:a": {}}}})),
        entry("old", "Update", "extensions/v1beta1", json!({"f:spec": {"f:replicas": {}}})),
    ]);
    let expected = entry("one", "Apply", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(scale_entries(&deployment, &PATHS), [expected]);
}

#[test]
fn who_scales_takes_the_replicas_from_their_owner() {
    let deployment = object(&[entry(
        "one",
        "Apply",
        "apps/v1",
        json!({"f:spec": {"f:replicas": {}, "f:selector": {}}}),
    )]);
    let scale = object(&[scaled("scaler", "Update", "autoscaling/v1")]);
    assert_eq!(
        scaled_entries(&deployment, &scale, &PATHS, "apps/v1"),
        [
            entry("one", "Apply", "apps/v1", json!({"f:spec": {"f:selector": {}}})),
            scaled("scaler", "Update", "apps/v1")
        ]
    );
}

#[test]
fn who_shares_the_replicas_keeps_them() {
    let fields = json!({"f:spec": {"f:replicas": {}, "f:selector": {}}});
    let deployment = object(&[entry("one", "Apply", "apps/v1", fields.clone())]);
    let mut shared = scale_entries(&deployment, &PATHS);
    shared.push(scaled("hpa", "Apply", "autoscaling/v1"));
    assert_eq!(
        scaled_entries(&deployment, &object(&shared), &PATHS, "apps/v1"),
        [
            scaled("hpa", "Apply", "apps/v1"),
            entry("one", "Apply", "apps/v1", fields)
        ]
    );
}
