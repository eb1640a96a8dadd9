//! A family's form: one good object, and what each case changes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Cases that begin with the same object; its name is its file's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The file's name without `.yaml`.
    #[serde(skip)]
    pub name: String,
    /// Said to the reader of the file only.
    #[serde(rename = "about")]
    _about: String,
    /// Where its objects are created.
    pub path: String,
    /// The CustomResourceDefinition that has to be there first.
    pub definition: Option<Value>,
    /// What the definition becomes when the objects are there and are about to be updated.
    pub tightened: Option<Tightened>,
    /// An object that the real server takes.
    pub object: Value,
    /// What is made of it.
    pub cases: Vec<Case>,
}

/// A definition that asks more than it did.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tightened {
    /// What is changed of the definition.
    pub set: Changes,
    /// What is changed of the good object so that the definition refuses it from then on.
    pub refuses: Changes,
}

/// JSON pointers and the values that take their place; `null` takes a field away, `/-` at the end appends.
pub type Changes = BTreeMap<String, Value>;

/// One question to a server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique in its file.
    pub name: String,
    /// What is changed before the object is created.
    #[serde(default)]
    pub set: Changes,
    /// What is changed of the created object before it is put back; without it the creation is the question.
    pub update: Option<Changes>,
    /// What is changed and really written before, of the same part.
    pub first: Option<Changes>,
    /// The subresource that is updated, if it is not the object itself.
    pub part: Option<String>,
}

impl Case {
    /// The object that is created: an update's has a name of its own, for it is really created.
    pub fn object(&self, family: &Family) -> Value {
        let mut object = family.object.clone();
        if self.update.is_some() {
            object["metadata"]["name"] = slug(&self.name).into();
        }
        change(&mut object, &self.set);
        object
    }
}

fn slug(name: &str) -> String {
    let word = |character: char| character.is_ascii_alphanumeric();
    let letters = |part: &str| part.to_lowercase();
    let parts: Vec<String> = name
        .split(|character| !word(character))
        .filter(|part| !part.is_empty())
        .map(letters)
        .collect();
    let mut slug = parts.join("-");
    slug.truncate(50);
    slug.trim_end_matches('-').to_owned()
}

/// Puts every value into its place; objects on the way are made.
pub fn change(object: &mut Value, changes: &Changes) {
    for (pointer, value) in changes {
        let parts: Vec<&str> = pointer.split('/').skip(1).collect();
        put(object, &parts, value);
    }
}

fn put(place: &mut Value, parts: &[&str], value: &Value) {
    let Some((part, rest)) = parts.split_first() else {
        *place = value.clone();
        return;
    };
    let name = part.replace("~1", "/").replace("~0", "~");
    match place {
        Value::Array(items) => {
            let index = name.parse().unwrap_or(items.len());
            if value.is_null() && rest.is_empty() {
                items.remove(index);
                return;
            }
            if index >= items.len() {
                items.push(Value::Null);
            }
            let last = items.len() - 1;
            put(&mut items[index.min(last)], rest, value);
        }
        Value::Object(members) if value.is_null() && rest.is_empty() => {
            members.remove(&name);
        }
        Value::Object(members) => put(members.entry(name).or_insert(Value::Null), rest, value),
        other => {
            *other = Value::Object(Map::new());
            put(other, parts, value);
        }
    }
}

/// Reads every `*.yaml` of `directory`, by name.
pub fn read_all(directory: &Path) -> Result<Vec<Family>, String> {
    let unreadable = |error| format!("read {}: {error}", directory.display());
    let entries: Vec<_> = fs::read_dir(directory).and_then(Iterator::collect).map_err(unreadable)?;
    let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Family, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut family: Family = serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    family.name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut names = BTreeSet::new();
    match family.cases.iter().find(|case| !names.insert(&case.name)) {
        Some(case) => Err(wrong(format!("two cases are called `{}`", case.name))),
        None => Ok(family),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_make_replace_append_and_take_away() {
        let mut object = json!({"a": [1, 2], "b": {"c": 1}});
        let changes = json!({"/a/0": 9, "/a/-": 3, "/b/c": null, "/d/e~1f": true});
        change(&mut object, &serde_json::from_value(changes).unwrap());
        assert_eq!(object, json!({"a": [9, 2, 3], "b": {}, "d": {"e/f": true}}));
    }
}
