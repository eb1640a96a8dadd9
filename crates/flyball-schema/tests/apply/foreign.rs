//! Entries in versions whose fields cannot be compared.

use flyball_schema::kinds;
use flyball_schema::managed_fields::{self, Request, Version};
use serde_json::{Value, json};

fn request<'a>(live: &'a Value, versions: &'a [(&'a str, Version<'a>)]) -> Request<'a> {
    let resource = kinds::builtin().kind("", "v1", "ConfigMap").expect("a built-in kind");
    Request {
        node: kinds::builtin().schemas.node(resource.schema.expect("a kind with a type")),
        live: Some(live),
        manager: "one",
        api_version: "v1",
        kind: "ConfigMap",
        subresource: None,
        reset: &[],
        versions,
        now: "2026-01-01T00:00:01Z",
    }
}

fn config_map(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": value}})
}

fn owned_in_v2() -> Value {
    let mut live = config_map("1");
    live["metadata"]["uid"] = json!("1");
    live["metadata"]["managedFields"] = json!([{
        "manager": "two", "operation": "Apply", "apiVersion": "v2",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
    }]);
    live
}

#[test]
fn an_apply_keeps_them_as_they_are() {
    let live = owned_in_v2();
    let applied = managed_fields::apply(&request(&live, &[("v2", Version::Foreign)]), &config_map("2"), false);
    let applied = applied.unwrap().unwrap();
    assert_eq!(applied["data"]["a"], "2");
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries[0], live["metadata"]["managedFields"][0]);
    assert_eq!(entries[1]["manager"], "one");
}

#[test]
fn what_they_own_stays_when_another_applier_lets_go() {
    let live = owned_in_v2();
    let versions = [("v2", Version::Foreign)];
    let shared = managed_fields::apply(&request(&live, &versions), &config_map("1"), false)
        .unwrap()
        .unwrap();
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let left = managed_fields::apply(&request(&shared, &versions), &nothing, false).unwrap().unwrap();
    assert_eq!(left["data"]["a"], "1");
    assert_eq!(left["metadata"]["managedFields"], live["metadata"]["managedFields"]);
}

#[test]
fn an_update_keeps_them_as_they_are() {
    let live = owned_in_v2();
    let mut new = config_map("2");
    managed_fields::update(&request(&live, &[("v2", Version::Foreign)]), &mut new);
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries[0], live["metadata"]["managedFields"][0]);
    assert_eq!(entries[1]["operation"], "Update");
}
