//! What somebody else had changed in a child, and an apply has put back.

use crate::cache::kind::{Form, Kind};
use crate::cache::object::Object;
use crate::context::Context;
use crate::{Event, Key};
use serde_json::Value;

/// More are only counted.
const FIELDS: usize = 5;

impl Context {
    /// Tells the log, the metrics and those who look at the object's events.
    pub(super) fn corrected(&self, kind: &Kind, key: &Key, before: &Object, after: &Object, known: Form) {
        let fields = match known {
            Form::Whole => fields(before, after),
            Form::Metadata => Vec::new(),
        };
        let fields = listed(&fields);
        let kind = kind.name();
        let told = Some(&*fields).filter(|fields| !fields.is_empty());
        tracing::info!(kind, child = %key, fields = told, "drift corrected");
        self.operator.metrics.drift_corrected(kind);
        let what = if fields.is_empty() {
            String::new()
        } else {
            format!(": {fields}")
        };
        self.event(Event::normal(
            "DriftCorrected",
            format!("{kind} {key} was changed by others and put back{what}"),
        ));
    }
}

/// The paths of the fields that differ, those aside that the API server keeps itself.
fn fields(before: &Object, after: &Object) -> Vec<String> {
    let mut fields = Vec::new();
    if let (Ok(before), Ok(after)) = (before.decode::<Value>(), after.decode::<Value>()) {
        differ(&before, &after, "", &mut fields);
    }
    let kept = [
        "metadata.managedFields",
        "metadata.resourceVersion",
        "metadata.generation",
        "status",
    ];
    fields.retain(|field| !kept.iter().any(|kept| field.starts_with(kept)));
    fields
}

fn differ(before: &Value, after: &Value, path: &str, fields: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            for name in names {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                differ(&before[name], &after[name], &path, fields);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let items = old.iter().zip(new).enumerate();
            items.for_each(|(index, (old, new))| differ(old, new, &format!("{path}[{index}]"), fields));
        }
        _ if before == after => {}
        _ => fields.push(path.to_owned()),
    }
}

fn listed(fields: &[String]) -> String {
    let more = fields.len().saturating_sub(FIELDS);
    let named = fields[..fields.len() - more].join(", ");
    if more > 0 {
        format!("{named} and {more} more")
    } else {
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(spec: Value) -> Object {
        let metadata = json!({ "name": "a", "resourceVersion": spec.to_string().len().to_string() });
        Object::parse(json!({ "metadata": metadata, "spec": spec }).to_string()).unwrap()
    }

    #[test]
    fn the_fields_that_differ_are_named() {
        let before = object(json!({ "a": 1, "b": [{ "c": 1, "d": 1 }], "e": [1], "f": 1 }));
        let after = object(json!({ "a": 1, "b": [{ "c": 2, "d": 1 }], "e": [1, 2], "g": 1 }));
        assert_eq!(fields(&before, &after), ["spec.b[0].c", "spec.e", "spec.f", "spec.g"]);
    }

    #[test]
    fn many_fields_are_counted() {
        let fields: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(String::from).into();
        assert_eq!(listed(&fields), "a, b, c, d, e and 2 more");
        assert_eq!(listed(&fields[..2]), "a, b");
    }
}
