//! Leaves out what differs between any two runs: times, uids, versions, generated names and hashes.

use regex::Regex;
use serde_json::{Map, Value, json};

/// Labels whose value is a hash of a template.
const HASHES: [&str; 3] = [
    "pod-template-hash",
    "controller-revision-hash",
    "controller.kubernetes.io/hash",
];

/// What is said in events, each once, in order.
pub(super) fn events(items: &Value) -> Value {
    let said = |event: &Value| {
        let from = match event["reportingComponent"].as_str() {
            Some(from) if !from.is_empty() => from,
            _ => event["source"]["component"].as_str().unwrap_or_default(),
        };
        json!({
            "from": from, "type": event["type"], "reason": event["reason"], "message": event["message"],
            "kind": event["involvedObject"]["kind"], "name": event["involvedObject"]["name"],
        })
    };
    items.as_array().into_iter().flatten().map(said).collect()
}

/// The same without what is accidental. Lists of objects are sorted.
pub(super) fn of(left: Value) -> Value {
    let mut names = Vec::new();
    collect(&left, &mut names);
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let uid = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").expect("a constant pattern");
    let time = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").expect("a constant pattern");
    let generated = Regex::new("-[bcdfghjklmnpqrstvwxz2456789]{5}\\b").expect("a constant pattern");
    let text = |text: &str| {
        let named = names.iter().fold(text.to_owned(), |text, (name, mark)| text.replace(name, mark));
        let named = uid.replace_all(&named, "<uid>").into_owned();
        let named = generated.replace_all(&named, "-*").into_owned();
        if time.is_match(&named) { "<time>".into() } else { named }
    };
    let Value::Object(collections) = left else {
        return left;
    };
    let sorted = |items: Value| {
        let mut items: Vec<Value> = match plain(items, &text) {
            Value::Array(items) => items,
            other => vec![other],
        };
        items.sort_by_cached_key(Value::to_string);
        items.dedup();
        Value::Array(items)
    };
    Value::Object(collections.into_iter().map(|(name, items)| (name, sorted(items))).collect())
}

/// Hashes, with what stands for them.
fn collect(value: &Value, names: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let Some(hash) = value.as_str().filter(|_| HASHES.contains(&key.as_str())) {
                    let hash = hash.rsplit('-').next().unwrap_or(hash);
                    names.push((hash.to_owned(), "#".into()));
                }
                collect(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

fn plain(value: Value, text: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(found) => Value::String(text(&found)),
        Value::Array(items) => items.into_iter().map(|item| plain(item, text)).collect(),
        Value::Object(fields) => {
            let kept = fields
                .into_iter()
                .filter(|(key, _)| !matches!(&**key, "managedFields" | "resourceVersion"));
            let fields: Map<String, Value> = kept.map(|(key, value)| (text(&key), plain(value, text))).collect();
            Value::Object(fields)
        }
        other => other,
    }
}
