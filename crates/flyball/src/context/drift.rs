//! What other managers had changed in a child, and an apply has put back.

use crate::cache::kind::Kind;
use crate::context::{Context, attempt};
use crate::{Event, Key, Result};
use kube::{
    api::{Patch, PatchParams, Request},
    core::Status,
};
use serde_json::{Map, Value, json};

/// More are only counted.
const MAX_FIELDS: usize = 5;

/// The field manager of a repair; it owns nothing afterwards.
const REPAIR: &str = "flyball-repair";

impl Context {
    /// Reports a correction in the log, the metrics and an event of the object.
    pub(super) fn corrected(&self, kind: &Kind, key: &Key, fields: &[String]) {
        let (kind, fields) = (kind.name(), listed(fields));
        tracing::info!(kind, child = %key, fields, "drift corrected");
        self.operator.metrics.drift_corrected(kind);
        let separator = if fields.is_empty() { "" } else { ": " };
        let note = format!("{kind} {key} was changed by others and put back{separator}{fields}");
        self.event(Event::normal("DriftCorrected", note));
    }

    /// Replaces the lists of a child that `refusal` is about, and says whether there were any that others had changed.
    ///
    /// Where another manager changes the key of an item (the `port` of a Service's port), server-side apply takes that for an item
    /// of the other manager's, adds ours beside it, and the two together may be invalid.
    pub(super) async fn replace_lists(&self, kind: &Kind, key: &Key, child: &Value, refusal: &Status) -> Result<bool> {
        let causes = refusal.details.iter().flat_map(|details| &details.causes);
        let mut paths: Vec<_> = causes.filter_map(|cause| list_path(&cause.field)).collect();
        paths.sort();
        paths.dedup();
        paths.retain(|path| child.pointer(path).is_some_and(Value::is_array));
        if paths.is_empty() {
            return Ok(false);
        }
        let collection = Request::new(kind.path(key.namespace()));
        let (_, text) = match self.request(collection.get(key.name(), &Default::default())?).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            found => found.map_err(attempt("get", kind, key))?,
        };
        let live: Value = serde_json::from_str(&text)?;
        let mut patch = json!({ "metadata": { "resourceVersion": live["metadata"]["resourceVersion"] } });
        let mut replaced = false;
        for path in &paths {
            let items = items_of(child, path);
            let merged: Vec<_> = items.iter().map(|item| merged(item, &items_of(&live, path))).collect();
            replaced |= items_of(&live, path).len() > merged.iter().filter(|item| item.1).count();
            set(&mut patch, path, merged.into_iter().map(|(item, _)| item).collect());
        }
        if !replaced {
            return Ok(false);
        }
        tracing::info!(kind = kind.name(), child = %key, lists = ?paths, "lists of a child are replaced");
        let params = PatchParams { field_manager: Some(REPAIR.into()), ..PatchParams::default() };
        let request = collection.patch(key.name(), &params, &Patch::Merge(&patch))?;
        let (_, text) = match self.request(request).await {
            // The refusal of the apply says more.
            Err(kube::Error::Api(status)) if status.code == 422 => return Ok(false),
            patched => patched.map_err(attempt("replace lists of", kind, key))?,
        };
        self.disown(kind, key, &serde_json::from_str(&text)?).await?;
        Ok(true)
    }

    /// Removes the manager of a repair: what it owned, an apply could not remove any more.
    async fn disown(&self, kind: &Kind, key: &Key, live: &Value) -> Result<()> {
        let entries = live["metadata"]["managedFields"].as_array();
        let Some(index) = entries.and_then(|entries| entries.iter().position(|entry| entry["manager"] == REPAIR))
        else {
            return Ok(());
        };
        let path = format!("/metadata/managedFields/{index}");
        let patch = json!([
            { "op": "test", "path": format!("{path}/manager"), "value": REPAIR },
            { "op": "remove", "path": path },
        ]);
        let patch = serde_json::from_value(patch)?;
        let request = Request::new(kind.path(key.namespace())).patch(
            key.name(),
            &PatchParams::default(),
            &Patch::Json::<()>(patch),
        )?;
        self.request(request).await.map_err(attempt("replace lists of", kind, key))?;
        Ok(())
    }
}

/// The list that a cause is about, as a JSON pointer: `/spec/ports` of `spec.ports[1].name`. Lists in lists are left alone.
fn list_path(field: &str) -> Option<String> {
    let (list, rest) = field.split_once('[')?;
    (!rest.contains('[')).then(|| format!("/{}", list.replace('.', "/")))
}

fn items_of(object: &Value, path: &str) -> Vec<Value> {
    object.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A desired item, with what a live one of the same name or values has beside it; and whether there is a live one.
fn merged(item: &Value, live: &[Value]) -> (Value, bool) {
    let contains = |live: &&Value| match (item, live) {
        (Value::Object(item), Value::Object(live)) => item.iter().all(|(name, value)| live.get(name) == Some(value)),
        (item, live) => item == *live,
    };
    match live.iter().find(contains) {
        Some(live) => (live.clone(), true),
        None => (item.clone(), false),
    }
}

/// Sets the list at a JSON pointer, making the objects on the way.
fn set(object: &mut Value, path: &str, items: Vec<Value>) {
    let steps = path[1..].split('/');
    let place = steps.fold(object, |place, step| {
        if !place.is_object() {
            *place = Map::new().into();
        }
        &mut place[step]
    });
    *place = items.into();
}

fn listed(fields: &[String]) -> String {
    let more = fields.len().saturating_sub(MAX_FIELDS);
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

    #[test]
    fn many_fields_are_counted() {
        let fields: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(String::from).into();
        assert_eq!(listed(&fields), "a, b, c, d, e and 2 more");
        assert_eq!(listed(&fields[..2]), "a, b");
    }

    #[test]
    fn a_cause_names_a_list_unless_it_is_in_another() {
        assert_eq!(list_path("spec.ports[1].name").as_deref(), Some("/spec/ports"));
        assert_eq!(list_path("spec.containers[0].ports[1]"), None);
        assert_eq!(list_path("spec.type"), None);
    }
}
