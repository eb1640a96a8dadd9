//! Defaulting, preparation and validation of built-in kinds beyond their types, one file per kind or family.
//! Follows `pkg/apis/*/v1/defaults.go`, `pkg/apis/*/validation` and `pkg/registry` in Kubernetes.

pub mod admission_policy;
mod admission_rule;
pub mod autoscaler;
pub mod batch;
pub mod budget;
mod conditions;
pub mod config_map;
pub mod definition;
pub mod event;
pub mod flow_control;
pub mod lease;
pub mod limit;
mod meta;
pub mod namespace;
pub mod network;
pub mod node;
pub mod pod;
pub mod pod_security;
pub mod priority;
pub mod quota;
mod resources;
pub mod role;
mod rules;
pub mod secret;
pub mod service;
mod spot;
pub mod storage;
pub mod typed;
pub mod volume;
pub mod warning;
pub mod webhook;
pub mod workload;

use serde_json::{Map, Value};

/// Sets an absent field; does nothing if the value is not an object.
fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut()
        && members.get(field).is_none_or(Value::is_null)
    {
        members.insert(field.to_owned(), value.into());
    }
}

/// Sets a field that is absent, or zero where Go does not distinguish zero from absent.
fn fill_zero(object: &mut Value, field: &str, value: impl Into<Value>) {
    let is_zero = |value: &Value| value == 0 || value == "";
    if let Some(members) = object.as_object_mut()
        && members.get(field).is_some_and(is_zero)
    {
        members.remove(field);
    }
    fill(object, field, value);
}

/// Sets a field; does nothing if the value is not an object.
fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field.to_owned(), value.into());
    }
}

/// The object in a field; replaces any other value by an empty object.
fn at<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let value = &mut object[field];
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value
}

/// The object in a field, if there is one.
fn within<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    object.get_mut(field).filter(|value| value.is_object())
}

/// The items of a list in a field; none if it is absent.
fn items<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}
