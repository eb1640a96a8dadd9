//! Objects side by side: what a server adds to them, and whether they differ in anything else.

use serde_json::Value;

/// Adds to an object what the server added: defaults, and metadata.
pub fn fill(object: &mut Value, observed: &Value) {
    match (object, observed) {
        (Value::Object(fields), Value::Object(observed)) => {
            for (name, value) in observed {
                match fields.get_mut(name) {
                    Some(field) => fill(field, value),
                    None => drop(fields.insert(name.clone(), value.clone())),
                }
            }
        }
        (Value::Array(items), Value::Array(observed)) if items.len() == observed.len() => {
            items.iter_mut().zip(observed).for_each(|(item, observed)| fill(item, observed));
        }
        _ => {}
    }
}

/// Takes a field out of an object.
pub fn remove(object: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    if let Some(Value::Object(fields)) = object.pointer_mut(&pointer(parent)) {
        fields.remove(name);
    }
}

/// Undoes a change to a field.
pub fn restore(object: &mut Value, live: Option<&Value>, path: &str) {
    remove(object, path);
    if let Some(value) = live.and_then(|live| live.pointer(&pointer(path))) {
        let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
        object.pointer_mut(&pointer(parent)).expect("the parent of a field that is reset")[name] = value.clone();
    }
}

/// The value at a path such as `spec.ports[0].port`.
pub fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    object.pointer(&pointer(&path.replace('[', ".").replace(']', "")))
}

fn pointer(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("/{}", path.replace('.', "/"))
    }
}

/// Says where an object is not what was observed. What it lacks may be a default, if it was not there before either.
pub fn difference(path: &str, ours: &Value, observed: &Value, live: &Value) -> Option<String> {
    match (ours, observed) {
        _ if path == ".metadata.managedFields" || path == ".metadata.generation" => None,
        (Value::Object(fields), Value::Object(expected)) => {
            let lacking = expected.iter().find_map(|(name, expected)| {
                let path = format!("{path}.{name}");
                let before = live.get(name).unwrap_or(&Value::Null);
                match fields.get(name) {
                    Some(ours) => difference(&path, ours, expected, before),
                    None => (before == expected && !expected.is_null()).then(|| format!("{path} is missing")),
                }
            });
            let extra = || fields.iter().find(|(name, value)| !expected.contains_key(*name) && !is_empty(value));
            lacking.or_else(|| extra().map(|(name, _)| format!("{path}.{name} should not be there")))
        }
        (Value::Array(items), Value::Array(expected)) if items.len() == expected.len() => {
            items.iter().zip(expected).enumerate().find_map(|(index, (item, expected))| {
                let before = live.get(index).unwrap_or(&Value::Null);
                difference(&format!("{path}[{index}]"), item, expected, before)
            })
        }
        // Go prints a float without a fraction as an integer.
        (Value::Number(ours), Value::Number(observed)) if ours.as_f64() == observed.as_f64() => None,
        _ => (ours != observed).then(|| format!("{path}\n  {ours}\nis not\n  {observed}")),
    }
}

/// Whether Go leaves a value out of a built-in kind, or puts it in by itself.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}
