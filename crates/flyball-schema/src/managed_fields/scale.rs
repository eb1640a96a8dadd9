//! Entries of `/scale`: `spec.replicas` of a Scale stands for another path of the object that is scaled.

use super::entry::{self, Entry};
use super::field_set::FieldSet;
use super::path::PathElement;
use serde_json::Value;

const SCALE: &str = "autoscaling/v1";
const REPLICAS: [PathElement<'static>; 2] = [PathElement::Field("spec"), PathElement::Field("replicas")];

/// Where the versions of a kind keep their number of replicas, such as `("apps/v1", "spec.replicas")`.
pub type ReplicasPaths<'a> = [(&'a str, &'a str)];

/// The `managedFields` of an object's Scale.
// apimachinery, util/managedfields/scalehandler.go, ToSubresource
pub fn scale_entries(object: &Value, paths: &ReplicasPaths<'_>) -> Vec<Value> {
    let mut entries = entry::decode(object).unwrap_or_default();
    entries.retain_mut(|entry| {
        let replicas = path_in(entry.api_version, paths);
        let owned = replicas.is_some_and(|path| entry.fields.contains(&path));
        entry.api_version = SCALE;
        entry.fields = FieldSet::default();
        entry.fields.insert(&REPLICAS);
        owned
    });
    entry::encode(entries)
}

/// The `managedFields` of an object after its Scale was written in one version.
// apimachinery, util/managedfields/scalehandler.go, ToParent
pub fn scaled_entries(object: &Value, scale: &Value, paths: &ReplicasPaths<'_>, api_version: &str) -> Vec<Value> {
    let mut scale = entry::decode(scale).unwrap_or_default();
    let mut entries = entry::decode(object).unwrap_or_default();
    entries.retain_mut(|entry| {
        let Some(path) = path_in(entry.api_version, paths) else {
            return false;
        };
        if entry.fields.contains(&path) {
            match scale.iter().position(|scale| scale.is(entry)) {
                Some(index) => drop(scale.remove(index)),
                None => drop(entry.lose(&only(&path))),
            }
        }
        !entry.fields.is_empty()
    });
    let Some(path) = path_in(api_version, paths) else {
        return entry::encode(entries);
    };
    let scale = scale.into_iter().filter(|entry| entry.fields.contains(&REPLICAS));
    // Upstream looks their times up among those of the object, where they are not.
    entries.extend(scale.map(|entry| Entry { api_version, time: None, fields: only(&path), ..entry }));
    entry::encode(entries)
}

fn path_in<'a>(api_version: &str, paths: &ReplicasPaths<'a>) -> Option<Vec<PathElement<'a>>> {
    let (_, path) = paths.iter().find(|(version, _)| *version == api_version)?;
    Some(path.split('.').map(PathElement::Field).collect())
}

fn only<'a>(path: &[PathElement<'a>]) -> FieldSet<'a> {
    let mut set = FieldSet::default();
    set.insert(path);
    set
}
