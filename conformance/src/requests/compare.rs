//! Finds where two normalised answers differ, by path.

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where, as in `body/spec/replicas`, `header/warning` or `status`.
    pub path: String,
    /// What the real server has there.
    pub reference: Option<Value>,
    /// What ours has there.
    pub ours: Option<Value>,
}

impl Display for Difference {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), shortened);
        write!(formatter, "{}: real {}, ours {}", self.path, show(&self.reference), show(&self.ours))
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Every place where the answers differ, outermost first.
pub fn differences(reference: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(reference), Some(ours), &mut found);
    found
}

fn compare(path: String, reference: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
    if reference == ours {
        return;
    }
    let under = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}/{key}")
        }
    };
    match (reference, ours) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut keys: Vec<&String> =
                left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                compare(under(key), left.get(key), right.get(key), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                compare(under(&index.to_string()), left.get(index), right.get(index), found);
            }
        }
        _ => found.push(Difference { path, reference: reference.cloned(), ours: ours.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_answers_have_no_difference() {
        assert_eq!(differences(&json!({"a": [1, {"b": null}]}), &json!({"a": [1, {"b": null}]})), []);
    }

    #[test]
    fn differences_are_found_by_path() {
        let found = differences(&json!({"body": {"a": [1, 2], "b": 1}}), &json!({"body": {"a": [1], "b": 2}}));
        let shown: Vec<String> = found.iter().map(Difference::to_string).collect();
        assert_eq!(shown, ["body/a/1: real 2, ours nothing", "body/b: real 1, ours 2"]);
    }
}
