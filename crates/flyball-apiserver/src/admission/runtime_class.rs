//! RuntimeClass: a new pod gets the overhead and the scheduling constraints of its RuntimeClass.
// plugin/pkg/admission/runtimeclass/admission.go

use crate::admission::Attributes;
use crate::admission::chain::Plugin;
use crate::kinds::core::POD;
use crate::registry::object;
use crate::status::Result;
use flyball_schema::quantity::Quantity;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The plugin.
pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&POD)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let Some(class) = class_of(attributes).await? else {
                return Ok(());
            };
            if class["overhead"].is_object() {
                let (wanted, given) = (&class["overhead"]["podFixed"], &attributes.object["spec"]["overhead"]);
                if given.as_object().is_some_and(|given| !given.is_empty()) && amounts(given) != amounts(wanted) {
                    return Err(attributes.forbidden(MISMATCH));
                }
                if !wanted.is_null() {
                    attributes.object["spec"]["overhead"] = wanted.clone();
                }
            }
            match class["scheduling"].as_object() {
                Some(scheduling) => schedule(attributes, scheduling),
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let class = class_of(attributes).await?.unwrap_or_default();
            let given = &attributes.object["spec"]["overhead"];
            if !class["overhead"].is_object() {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                return if given.is_object() {
                    Err(attributes.forbidden(why))
                } else {
                    Ok(())
                };
            }
            match amounts(given) == amounts(&class["overhead"]["podFixed"]) {
                true => Ok(()),
                false => Err(attributes.forbidden(MISMATCH)),
            }
        }
        .boxed()
    }
}

async fn class_of(attributes: &Attributes<'_>) -> Result<Option<Value>> {
    let Some(name) = attributes.object["spec"]["runtimeClassName"].as_str() else {
        return Ok(None);
    };
    match attributes.get(format!("node.k8s.io/runtimeclasses/{name}")).await? {
        Some(entry) => Ok(Some(object::decode(&entry.value))),
        None => Err(attributes.forbidden(format!("pod rejected: RuntimeClass {name:?} not found"))),
    }
}

fn amounts(list: &Value) -> BTreeMap<&str, Option<Quantity>> {
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    let all = list.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.as_str(), amount(value))).collect()
}

// setScheduling
fn schedule(attributes: &mut Attributes<'_>, scheduling: &Map<String, Value>) -> Result<()> {
    let wanted = scheduling.get("nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut selector = attributes.object["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
    for (key, value) in wanted {
        if let Some(given) = selector.get(&key).filter(|given| **given != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (wanted, given) = (text(&value), text(given));
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(attributes.forbidden(why));
        }
        selector.insert(key, value);
    }
    let spec = &mut attributes.object["spec"];
    if !selector.is_empty() {
        spec["nodeSelector"] = selector.into();
    }
    let list = |tolerations: Option<&Value>| tolerations.and_then(Value::as_array).cloned().unwrap_or_default();
    let all = [list(spec.get("tolerations")), list(scheduling.get("tolerations"))].concat();
    let merged = merge(&all);
    if !merged.is_empty() {
        spec["tolerations"] = merged.into();
    }
    Ok(())
}

/// The tolerations that no other one includes; of equal ones, the first.
// pkg/util/tolerations/tolerations.go, MergeTolerations
fn merge(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let is_included = merged.iter().any(|other| includes(other, one))
            || all[index + 1..].iter().any(|other| other != one && includes(other, one));
        if !is_included {
            merged.push(one.clone());
        }
    }
    merged
}

// isSuperset
fn includes(superset: &Value, one: &Value) -> bool {
    if superset == one {
        return true;
    }
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let same = |field: &str| text(superset, field) == text(one, field);
    let exists = superset["operator"] == "Exists";
    let is_any_key = text(superset, "key").is_empty() && exists;
    if !same("key") && !is_any_key {
        return false;
    }
    if !same("effect") && !text(superset, "effect").is_empty() {
        return false;
    }
    if let (true, Some(limit)) = (superset["effect"] == "NoExecute", superset["tolerationSeconds"].as_i64())
        && one["tolerationSeconds"].as_i64().is_none_or(|seconds| seconds > limit)
    {
        return false;
    }
    match superset["operator"].as_str().unwrap_or_default() {
        "Equal" | "" => one["operator"] == "Equal" && same("value"),
        _ => exists,
    }
}
