//! `Context::diff`: what an apply would change, by a dry run on the API server.

use crate::cache::kind::Kind;
use crate::context::apply::{APPLIED, fold_string_data, without_nulls};
use crate::context::own::Ownership;
use crate::context::{Context, attempt, unset};
use crate::{Error, Key, Result};
use kube::{
    Resource,
    api::{GetParams, Patch, PatchParams, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::fmt;

/// Fields that the API server keeps itself.
const SERVER_FIELDS: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The fields that identify an item of a list, if their values differ between all items.
const ITEM_KEYS: [&str; 4] = ["name", "type", "uid", "key"];

/// What an apply would change; see [`Context::diff`]. It is printed as one line per field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Diff {
    /// The object.
    pub key: Key,
    /// Whether the object is there already.
    pub exists: bool,
    /// The fields that would differ.
    pub differences: Vec<Difference>,
}

/// A field that an apply would change.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where it is, as in `spec.containers[name=web].image`.
    pub path: String,
    /// Its value now.
    pub old: Option<Value>,
    /// Its value after an apply.
    pub new: Option<Value>,
}

impl Diff {
    /// Whether an apply would change nothing.
    pub fn is_empty(&self) -> bool {
        self.exists && self.differences.is_empty()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => write!(f, "{}: {old} -> {new}", self.path),
            (Some(old), None) => write!(f, "{}: {old} is removed", self.path),
            (None, Some(new)) => write!(f, "{}: {new} is added", self.path),
            (None, None) => write!(f, "{}", self.path),
        }
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.differences.iter().map(Difference::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Context {
    /// What [`Context::apply`] of `child` would change, as the API server says by a dry run. Nothing is written, and the cache
    /// is not asked: the object is read as it is now. What the API server would refuse is an error here too.
    ///
    /// ```
    /// # use flyball::{Context, Result};
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn preview(ctx: &Context, deployment: Deployment) -> Result<()> {
    /// for difference in ctx.diff(deployment).await?.differences {
    ///     println!("{difference}"); // spec.replicas: 1 -> 3
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn diff<C>(&self, child: C) -> Result<Diff>
    where
        C: Resource<DynamicType = (), Scope: 'static> + Serialize + DeserializeOwned,
    {
        self.objects::<C>().diff(child).await
    }

    pub(super) async fn diff_child<C>(&self, kind: &Kind, child: C) -> Result<Diff>
    where
        C: Serialize + DeserializeOwned,
    {
        self.declared.check_apply(kind).map_err(Error::permanent)?;
        let child = serde_json::to_value(child)?;
        let (key, mut child) = self.adopt(kind, child, Ownership::Controlled).map_err(Error::permanent)?;
        without_nulls(&mut child);
        fold_string_data(kind, &mut child);
        if unset::may_be_dropped(kind) {
            child = unset::drop_from::<C>(child);
        }
        let collection = Request::new(kind.path(key.namespace()));
        let read = match self.request(collection.get(key.name(), &GetParams::default())?).await {
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            read => Some(serde_json::from_str(&read.map_err(attempt("get", kind, &key))?.1)?),
        };
        let params = PatchParams {
            dry_run: true,
            ..PatchParams::apply(&self.operator.name).force()
        };
        let request = collection.patch(key.name(), &params, &Patch::Apply(&child))?;
        let (_, text) = self.request(request).await.map_err(attempt("dry run of apply", kind, &key))?;
        let (old, new) = (read.as_ref().map(stated), stated(&serde_json::from_str(&text)?));
        let mut differences = Vec::new();
        compare(old.as_ref(), Some(&new), String::new(), &mut differences);
        Ok(Diff { key, exists: read.is_some(), differences })
    }
}

/// An object without what the API server and the controllers of its kind say of it.
fn stated(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(root) = object.as_object_mut() {
        ["apiVersion", "kind", "status"].iter().for_each(|field| drop(root.remove(*field)));
        if let Some(metadata) = root.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.retain(|name, _| !name.starts_with(APPLIED));
            }
        }
    }
    object
}

/// Adds the fields below `path` that differ. Where only one side is there, its innermost fields are named.
fn compare(old: Option<&Value>, new: Option<&Value>, path: String, differences: &mut Vec<Difference>) {
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(_)) | None, Some(Value::Object(_)) | None) => {
            let none = Map::new();
            let [old, new] = [old, new].map(|side| side.and_then(Value::as_object).unwrap_or(&none));
            if old.is_empty() && new.is_empty() {
                return;
            }
            for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
                compare(old.get(name), new.get(name), field(&path, name), differences);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => items(old, new, &path, differences),
        _ => differences.push(Difference { path, old: old.cloned(), new: new.cloned() }),
    }
}

/// Compares lists: by what tells their items apart, or by position.
fn items(old: &[Value], new: &[Value], path: &str, differences: &mut Vec<Difference>) {
    let Some(key) = ITEM_KEYS.into_iter().find(|key| tells_apart(old, key) && tells_apart(new, key)) else {
        for index in 0..old.len().max(new.len()) {
            compare(old.get(index), new.get(index), format!("{path}[{index}]"), differences);
        }
        return;
    };
    let find = |items: &'_ [Value], name: &Value| items.iter().position(|item| item[key] == *name);
    let added = new.iter().filter(|item| find(old, &item[key]).is_none());
    for name in old.iter().chain(added).map(|item| &item[key]) {
        let [before, after] = [old, new].map(|items| find(items, name).map(|index| &items[index]));
        let name = name.as_str().unwrap_or_default();
        compare(before, after, format!("{path}[{key}={name}]"), differences);
    }
}

fn tells_apart(items: &[Value], key: &str) -> bool {
    let mut names: Vec<_> = items.iter().filter_map(|item| item[key].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len() == items.len()
}

fn field(path: &str, name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    match (path, is_plain) {
        ("", true) => name.to_owned(),
        (path, true) => format!("{path}.{name}"),
        (path, false) => format!("{path}[{name:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_named_by_their_path_with_both_values() {
        let old =
            json!({ "a": 1, "m": { "x.y/z": "1" }, "l": [{ "name": "b", "v": 1 }, { "name": "c" }], "p": [1, 2] });
        let new =
            json!({ "a": 2, "m": {}, "l": [{ "name": "d", "v": { "w": 3 } }, { "name": "b", "v": 2 }], "p": [1] });
        let mut differences = Vec::new();
        compare(Some(&old), Some(&new), String::new(), &mut differences);
        let lines: Vec<_> = differences.iter().map(Difference::to_string).collect();
        assert_eq!(
            lines,
            [
                "a: 1 -> 2",
                "l[name=b].v: 1 -> 2",
                "l[name=c].name: \"c\" is removed",
                "l[name=d].name: \"d\" is added",
                "l[name=d].v.w: 3 is added",
                "m[\"x.y/z\"]: \"1\" is removed",
                "p[1]: 2 is removed",
            ]
        );
    }
}
