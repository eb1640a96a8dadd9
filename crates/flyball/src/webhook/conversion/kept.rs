//! What a conversion would lose, as a list of places with their values, and how it is put back.
//! A value is put back only where the converted object still has what the conversion made of it: who has changed that part
//! through the other version meant to.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// One place that differs after a round trip. A value is a list of one, and empty where there is none.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Kept {
    path: Vec<Segment>,
    /// What the round trip makes of it.
    was: Vec<Value>,
    /// What it was before.
    value: Vec<Value>,
}

/// A step down into a value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
enum Segment {
    Field(String),
    /// The item of a list whose items have names.
    Item {
        name: String,
    },
}

/// The places where `returned`, the object after a round trip, differs from what it was before.
pub(super) fn lost(returned: &Value, before: &Value) -> Vec<Kept> {
    let mut kept = Vec::new();
    compare(&mut Vec::new(), Some(returned), Some(before), &mut kept);
    kept
}

pub(super) fn to_text(kept: &[Kept]) -> String {
    serde_json::to_string(kept).expect("a list of values is JSON")
}

/// Puts back what was lost.
pub(super) fn restore(object: &mut Value, text: &str) {
    match serde_json::from_str::<Vec<Kept>>(text) {
        Ok(kept) => kept.into_iter().for_each(|kept| put_back(object, &kept)),
        Err(error) => tracing::warn!(%error, "what a conversion has kept in an annotation cannot be read"),
    }
}

fn compare(path: &mut Vec<Segment>, returned: Option<&Value>, before: Option<&Value>, kept: &mut Vec<Kept>) {
    match (returned, before) {
        _ if returned == before => {}
        (Some(Value::Object(returned)), Some(Value::Object(before))) => {
            let names: BTreeSet<_> = returned.keys().chain(before.keys()).collect();
            for name in names {
                path.push(Segment::Field(name.clone()));
                compare(path, returned.get(name), before.get(name), kept);
                path.pop();
            }
        }
        (Some(Value::Array(returned)), Some(Value::Array(before)))
            if item_names(returned).is_some() && item_names(returned) == item_names(before) =>
        {
            for (returned, before) in returned.iter().zip(before) {
                let name = before["name"].as_str().unwrap_or_default().to_owned();
                path.push(Segment::Item { name });
                compare(path, Some(returned), Some(before), kept);
                path.pop();
            }
        }
        _ => kept.push(Kept {
            path: path.clone(),
            was: returned.cloned().into_iter().collect(),
            value: before.cloned().into_iter().collect(),
        }),
    }
}

/// The names of a list's items, if each is an object with a name of its own.
fn item_names(items: &[Value]) -> Option<Vec<&str>> {
    let names: Option<Vec<_>> = items.iter().map(|item| item["name"].as_str()).collect();
    let unique = |names: &Vec<&str>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    names.filter(unique)
}

fn put_back(object: &mut Value, kept: &Kept) {
    let Some((last, path)) = kept.path.split_last() else {
        return;
    };
    let parent = path.iter().try_fold(object, |value, segment| match segment {
        Segment::Field(name) => value.get_mut(name),
        Segment::Item { name } => item(value, name),
    });
    match (parent, last) {
        (Some(Value::Object(fields)), Segment::Field(name)) if fields.get(name) == kept.was.first() => {
            match kept.value.first() {
                Some(value) => fields.insert(name.clone(), value.clone()),
                None => fields.remove(name),
            };
        }
        (Some(items), Segment::Item { name }) => {
            if let (Some(item), Some(value)) = (item(items, name), kept.value.first())
                && kept.was.first() == Some(&*item)
            {
                *item = value.clone();
            }
        }
        _ => {}
    }
}

fn item<'a>(items: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    items.as_array_mut()?.iter_mut().find(|item| item["name"] == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_lost_is_put_back_unless_it_was_changed() {
        let before = json!({ "spec": { "megabytes": 1500, "new": { "a": 1 }, "ports": [{ "name": "b", "extra": 2 }, { "name": "a" }] } });
        let returned =
            json!({ "spec": { "megabytes": 1024, "added": true, "ports": [{ "name": "b" }, { "name": "a" }] } });
        let text = to_text(&lost(&returned, &before));
        let mut unchanged = returned.clone();
        restore(&mut unchanged, &text);
        assert_eq!(unchanged, before);

        let mut edited = json!({ "spec": { "megabytes": 2048, "added": true, "ports": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] } });
        restore(&mut edited, &text);
        assert_eq!(edited["spec"]["megabytes"], 2048, "changed meanwhile");
        assert_eq!(edited["spec"]["new"], json!({ "a": 1 }));
        assert_eq!(
            edited["spec"]["ports"],
            json!([{ "name": "a" }, { "name": "b", "extra": 2 }, { "name": "c" }])
        );

        let mut removed = json!({ "spec": null });
        restore(&mut removed, &text);
        assert_eq!(removed, json!({ "spec": null }));
    }

    #[test]
    fn lists_without_names_are_kept_whole() {
        let (returned, before) = (json!({ "list": [1, 2] }), json!({ "list": [1, null, 2] }));
        let text = to_text(&lost(&returned, &before));
        for (list, expected) in [(json!([1, 2]), json!([1, null, 2])), (json!([1]), json!([1]))] {
            let mut object = json!({ "list": list });
            restore(&mut object, &text);
            assert_eq!(object["list"], expected);
        }
    }
}
