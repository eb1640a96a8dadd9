//! Merging an object that a policy makes into another one: as server-side apply does it, without owners.
// apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go, ApplyStructuredMergeDiff

use super::check::{Duplicates, check};
use super::merge;
use super::shape::Type;
use crate::schema::Node;
use serde_json::Value;
use std::fmt::Write;

/// The object with what the configuration sets.
///
/// # Errors
/// What does not fit the type, or is atomic, in kube-apiserver's words.
pub fn merge_configuration(node: Node<'_>, live: &Value, config: &Value) -> Result<Value, String> {
    let ty = Type::root(node);
    check(ty, config, Duplicates::Refused)
        .map_err(|misfits| format!("failed to convert patch object to typed object: {misfits}"))?;
    let mut atomics = Vec::new();
    collect_atomics(ty, config, &mut String::new(), &mut atomics);
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        ));
    }
    check(ty, live, Duplicates::Allowed)
        .map_err(|misfits| format!("failed to convert original object to typed object: {misfits}"))?;
    Ok(merge::merge(ty, live, config).into_owned())
}

/// Collects the paths of atomic values: setting a part of one would remove the rest of it.
fn collect_atomics(ty: Type<'_>, value: &Value, path: &mut String, atomics: &mut Vec<String>) {
    let (atom, length) = (ty.atom(), path.len());
    match value {
        Value::Object(fields) => {
            let Some(map) = atom.map else { return };
            if map.atomic {
                atomics.push(path.clone());
            }
            for (name, value) in fields.iter().filter(|(name, _)| map.declares(name)) {
                path.push('.');
                path.push_str(name);
                collect_atomics(map.field(name), value, path, atomics);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(list) = atom.list else { return };
            if list.is_atomic() {
                atomics.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                write!(path, "[{index}]").expect("writing to a string does not fail");
                collect_atomics(list.items, item, path, atomics);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
