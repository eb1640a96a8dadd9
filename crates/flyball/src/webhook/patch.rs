//! The JSON patch (RFC 6902) that a change of a typed object amounts to on the object as the API server sent it.
//! A Rust type may drop fields that it does not know, and write fields that were absent. So the change is taken from the typed
//! object before and after, and carried over to the original.

use serde_json::{Map, Value, json};

/// The operations that change `original` as `before` was changed to `after`.
pub(crate) fn patch(original: &Value, before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    carry("", Some(original), before, after, &mut operations);
    operations
}

fn carry(path: &str, original: Option<&Value>, before: &Value, after: &Value, operations: &mut Vec<Value>) {
    match (original, before, after) {
        _ if before == after => {}
        (Some(Value::Object(original)), Value::Object(before), Value::Object(after)) => {
            carry_fields(path, original, before, after, operations);
        }
        (Some(Value::Array(original)), Value::Array(before), Value::Array(after))
            if original.len() == before.len() && before.len() == after.len() =>
        {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                carry(&format!("{path}/{index}"), original.get(index), before, after, operations);
            }
        }
        (Some(Value::Array(original)), Value::Array(before), Value::Array(after)) => {
            let value: Value = after.iter().map(|item| kept_item(original, before, item)).collect();
            operations.push(json!({ "op": "replace", "path": path, "value": value }));
        }
        (Some(_), ..) => operations.push(json!({ "op": "replace", "path": path, "value": without_nulls(after) })),
        (None, ..) => operations.push(json!({ "op": "add", "path": path, "value": without_nulls(after) })),
    }
}

fn carry_fields(
    path: &str,
    original: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    operations: &mut Vec<Value>,
) {
    let present = |fields: &Map<String, Value>, name: &str| fields.get(name).filter(|value| !value.is_null()).cloned();
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    for name in names {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        match (present(before, name), present(after, name)) {
            (before, Some(after)) => {
                carry(&path, original.get(name), &before.unwrap_or_default(), &after, operations);
            }
            (Some(_), None) if original.contains_key(name) => {
                operations.push(json!({ "op": "remove", "path": path }));
            }
            (_, None) => {}
        }
    }
}

/// An item of a list whose length has changed: one that was there before is kept as the API server sent it.
fn kept_item(original: &[Value], before: &[Value], item: &Value) -> Value {
    let same = before.iter().position(|before| before == item);
    let kept = same.and_then(|index| original.get(index)).filter(|_| original.len() == before.len());
    kept.cloned().unwrap_or_else(|| without_nulls(item))
}

/// The same value without fields that are null: a Rust type writes an absent field so.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_typed_object_is_carried_over_to_the_original() {
        // What a type with a defaulted `replicas`, an optional `mode` and a list of named items reads from the original.
        let original = json!({ "spec": { "unknown": 1, "ports": [{ "name": "a", "extra": true }, { "name": "b" }] } });
        let typed = json!({ "spec": { "replicas": 1, "mode": null, "ports": [{ "name": "a" }, { "name": "b" }] } });
        let changed = |change: fn(&mut Value)| {
            let mut after = typed.clone();
            change(&mut after);
            Value::from(patch(&original, &typed, &after))
        };
        assert_eq!(changed(|_| ()), json!([]));
        assert_eq!(
            changed(|after| after["spec"]["replicas"] = 2.into()),
            json!([{ "op": "add", "path": "/spec/replicas", "value": 2 }])
        );
        assert_eq!(
            changed(|after| after["spec"]["mode"] = "fast".into()),
            json!([{ "op": "add", "path": "/spec/mode", "value": "fast" }])
        );
        assert_eq!(
            changed(|after| after["spec"]["ports"][1]["name"] = "c".into()),
            json!([{ "op": "replace", "path": "/spec/ports/1/name", "value": "c" }])
        );
        assert_eq!(
            changed(|after| drop(after["spec"]["ports"].as_array_mut().unwrap().pop())),
            json!([{ "op": "replace", "path": "/spec/ports", "value": [{ "name": "a", "extra": true }] }])
        );
        assert_eq!(
            changed(|after| after["spec"]["ports"] = Value::Null),
            json!([{ "op": "remove", "path": "/spec/ports" }])
        );
        assert_eq!(
            changed(|after| after["metadata"] = json!({ "labels": { "a/b~c": "d" } })),
            json!([{ "op": "add", "path": "/metadata", "value": { "labels": { "a/b~c": "d" } } }])
        );
    }

    #[test]
    fn names_are_escaped_as_json_pointers() {
        let before = json!({ "labels": { "x": "" } });
        let after = json!({ "labels": { "x": "", "a/b~c": "d" } });
        let path = "/labels/a~1b~0c";
        assert_eq!(patch(&before, &before, &after), [json!({ "op": "add", "path": path, "value": "d" })]);
    }
}
