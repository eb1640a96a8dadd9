//! Two states of a status: what one has and the other lacks, and the patch from one to the other.

use crate::cache::kind::Kind;
use crate::cache::object::Object;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};
use std::collections::BTreeMap;

/// Fields that tell the items of a list apart, wherever Kubernetes' own kinds have them.
const NAMES: [&str; 2] = ["type", "name"];

/// Whether `whole` has every field of `part`, with the same value.
pub(super) fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|whole| contains(whole, value))),
        _ => whole == part,
    }
}

/// Whether `before` has a field, or an item of a list, that `after` lacks.
pub(super) fn has_more(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .any(|(name, value)| after.get(name).is_none_or(|after| has_more(value, after))),
        (Value::Array(before), Value::Array(after)) => before.iter().any(|item| {
            let same = after.iter().find(|after| *after == item).or_else(|| namesake(item, after));
            same.is_none_or(|after| has_more(item, after))
        }),
        (Value::Object(before), _) => !before.is_empty(),
        (Value::Array(before), _) => !before.is_empty(),
        _ => false,
    }
}

/// Whether there is a list in it.
pub(super) fn has_lists(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_lists),
        _ => false,
    }
}

fn namesake<'a>(item: &Value, items: &'a [Value]) -> Option<&'a Value> {
    let name = NAMES.into_iter().find(|name| item.get(name).is_some_and(Value::is_string))?;
    items.iter().find(|other| other.get(name) == item.get(name))
}

/// The merge patch (RFC 7386) that makes `after` of `before`. It also says what stays: `before` may be known too late.
pub(super) fn patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return after.clone();
    };
    let gone = before
        .keys()
        .filter(|name| !after.contains_key(*name))
        .map(|name| (name.clone(), Value::Null));
    let set = after
        .iter()
        .map(|(name, after)| (name.clone(), patch(before.get(name).unwrap_or(&Value::Null), after)));
    gone.chain(set).collect::<Map<_, _>>().into()
}

/// What a merge patch (RFC 7386) makes of `before`.
pub(super) fn applied(before: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut after = before.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            after.remove(name);
        } else {
            let value = applied(after.get(name).unwrap_or(&Value::Null), value);
            after.insert(name.clone(), value);
        }
    }
    after.into()
}

/// An object with a new status, as it is sent: its metadata says no more than which version of which object is meant, and its
/// spec is left out. Such a write leaves both as they are, with their managers (apiextensions-apiserver,
/// `statusStrategy.GetResetFields`); managers would lose other fields that were missing.
pub(super) fn body(object: &Object, kind: &Kind, status: &Value) -> serde_json::Result<Vec<u8>> {
    let metadata =
        json!({ "name": object.key.name(), "uid": &*object.uid, "resourceVersion": object.resource_version() });
    let (api_version, name) = (to_raw_value(&kind.resource.api_version)?, to_raw_value(kind.name())?);
    let (metadata, status, object) = (to_raw_value(&metadata)?, to_raw_value(status)?, object.json());
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(&object)?;
    fields.remove("spec");
    fields.extend([
        ("apiVersion".into(), &*api_version),
        ("kind".into(), &*name),
        ("metadata".into(), &*metadata),
        ("status".into(), &*status),
    ]);
    serde_json::to_vec(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_sent_with_neither_the_spec_nor_the_metadata_that_stay_as_they_are() {
        let kind = Kind::of::<k8s_openapi::api::apps::v1::Deployment>();
        let metadata = json!({ "name": "ada", "namespace": "default", "uid": "u", "resourceVersion": "7", "labels": { "a": "b" } });
        let object = json!({ "metadata": metadata, "data": [1], "spec": { "a": 1 }, "status": { "b": 2 } });
        let object = Object::parse(object.to_string()).unwrap();
        let body = body(&object, &kind, &json!({ "c": 3 })).unwrap();
        let metadata = json!({ "name": "ada", "uid": "u", "resourceVersion": "7" });
        let expected = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "data": [1], "status": { "c": 3 } });
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
    }

    #[test]
    fn only_what_would_go_unsaid_is_more() {
        let cases = [
            (json!({}), json!({ "a": 1 }), false),
            (json!({ "a": 1 }), json!({ "a": { "b": 2 } }), false),
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), true),
            (json!({ "a": { "b": 2 } }), json!({ "a": {} }), true),
            (json!({ "a": { "b": 2 } }), json!({ "a": 3 }), true),
            (json!({ "a": [1, 2] }), json!({ "a": [2, 3, 1] }), false),
            (json!({ "a": [1, 2] }), json!({ "a": [2] }), true),
            (
                json!([{ "type": "A", "status": "True" }]),
                json!([{ "type": "A", "status": "False" }]),
                false,
            ),
            (json!([{ "type": "A", "message": "why" }]), json!([{ "type": "A" }]), true),
            (json!([{ "type": "A" }, { "type": "B" }]), json!([{ "type": "A" }]), true),
            (json!([{ "ip": "1.1.1.1" }]), json!([{ "ip": "2.2.2.2" }]), true),
        ];
        for (before, after, more) in cases {
            assert_eq!(has_more(&before, &after), more, "{before} {after}");
        }
    }

    #[test]
    fn a_patch_takes_away_what_is_gone_and_says_the_rest() {
        let before = json!({ "a": { "b": 1, "c": 2 }, "list": [1, 2], "gone": true, "same": 1 });
        let after = json!({ "a": { "b": 3 }, "list": [2], "same": 1, "new": { "d": 4 } });
        let expected = json!({ "a": { "b": 3, "c": null }, "list": [2], "gone": null, "same": 1, "new": { "d": 4 } });
        assert_eq!(patch(&before, &after), expected);
        assert_eq!(applied(&before, &expected), after);
    }
}
