//! What is served, told to clients: group by group as since the beginning, or all at once (`apidiscovery.k8s.io/v2`).

use crate::registry::{Kind, Served};
use base64::prelude::{BASE64_STANDARD, Engine};
use flyball_schema::kinds;
use flyball_schema::resource::{Resource, Subresource};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::sync::Arc;

/// The groups that are served, most important first.
pub struct Groups(Vec<Group>);

/// One group, its versions best first.
pub struct Group {
    /// Its name; empty for the core group.
    pub name: Box<str>,
    /// Its versions, best first.
    pub versions: Vec<Version>,
}

/// One version of a group.
pub struct Version {
    /// Its name, such as `v1`.
    pub name: Box<str>,
    /// Its kinds.
    pub kinds: Vec<Arc<Kind>>,
}

impl Groups {
    /// Sorts what is served: built-in groups as the table has them, then custom ones by name.
    pub fn of(served: &Served) -> Groups {
        let mut groups: Vec<Group> = vec![];
        for kind in served.kinds() {
            let resource = &kind.resource;
            let at = groups.iter().position(|group| group.name == resource.group).unwrap_or_else(|| {
                groups.push(Group { name: resource.group.clone(), versions: vec![] });
                groups.len() - 1
            });
            groups[at].add(kind);
        }
        groups.sort_by_key(|group| (rank(&group.name), group.name.clone()));
        for group in &mut groups {
            group.versions.sort_by_key(|version| Reverse(priority(&version.name)));
        }
        Groups(groups)
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.0.iter().find(|group| &*group.name == name)
    }

    /// Every group and version that is served.
    pub fn versions(&self) -> impl Iterator<Item = (&Group, &Version)> {
        self.0.iter().flat_map(|group| group.versions.iter().map(move |version| (group, version)))
    }

    /// `/apis`: every group but the core one.
    pub fn list(&self) -> Value {
        let groups: Vec<Value> = self.named().map(Group::describe).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/api`, all at once.
    pub fn aggregated_core(&self) -> Value {
        aggregated(self.group("").into_iter())
    }

    /// `/apis`, all at once.
    pub fn aggregated(&self) -> Value {
        aggregated(self.named())
    }

    fn named(&self) -> impl Iterator<Item = &Group> {
        self.0.iter().filter(|group| !group.name.is_empty())
    }
}

impl Group {
    fn add(&mut self, kind: &Arc<Kind>) {
        let name = &kind.resource.version;
        match self.versions.iter_mut().find(|version| version.name == *name) {
            Some(version) => version.kinds.push(kind.clone()),
            None => self.versions.push(Version { name: name.clone(), kinds: vec![kind.clone()] }),
        }
    }

    /// The version of that name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// `/apis/<group>`
    pub fn list(&self) -> Value {
        let mut group = self.describe();
        group["kind"] = json!("APIGroup");
        group["apiVersion"] = json!("v1");
        group
    }

    fn describe(&self) -> Value {
        let version = |version: &Version| {
            let group_version = group_version(&self.name, &version.name);
            json!({"groupVersion": group_version, "version": version.name})
        };
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        json!({"name": self.name, "versions": versions, "preferredVersion": versions.first()})
    }

    fn aggregated(&self) -> Value {
        let version = |version: &Version| {
            let resources: Vec<Value> = version.kinds.iter().map(|kind| aggregated_resource(kind)).collect();
            json!({"version": version.name, "resources": resources, "freshness": "Current"})
        };
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        let mut metadata = json!({});
        if !self.name.is_empty() {
            metadata["name"] = json!(self.name);
        }
        json!({"metadata": metadata, "versions": versions})
    }
}

impl Version {
    /// `/apis/<group>/<version>`
    pub fn list(&self, group: &str) -> Value {
        let resources: Vec<Value> = self.kinds.iter().flat_map(|kind| resources(kind)).collect();
        let group_version = group_version(group, &self.name);
        let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
        // the core group's list was there before lists had versions
        if !group.is_empty() {
            list["apiVersion"] = json!("v1");
        }
        list
    }
}

/// `v1`, or `apps/v1`.
pub fn group_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        _ => format!("{group}/{version}"),
    }
}

fn aggregated<'a>(groups: impl Iterator<Item = &'a Group>) -> Value {
    let items: Vec<Value> = groups.map(Group::aggregated).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &Kind) -> Value {
    let Resource { plural, singular, short_names, categories, namespaced, .. } = &kind.resource;
    let scope = if *namespaced { "Namespaced" } else { "Cluster" };
    let mut entry = json!({
        "resource": plural, "responseKind": own_kind(kind), "scope": scope,
        "singularResource": singular, "verbs": verbs(kind)
    });
    extend(&mut entry, "shortNames", json!(short_names));
    extend(&mut entry, "categories", json!(categories));
    let subresource = |subresource: &Subresource| {
        let own = subresource.kind == kind.resource.kind && is_same_version(kind, subresource);
        let kind = if own {
            own_kind(kind)
        } else {
            foreign_kind(kind, subresource)
        };
        json!({"subresource": subresource.name, "responseKind": kind, "verbs": subresource.verbs})
    };
    let subresources: Vec<Value> = kind.resource.subresources.iter().map(subresource).collect();
    extend(&mut entry, "subresources", json!(subresources));
    entry
}

/// Built-in kinds leave out the group and version that they share with their list; custom ones do not.
fn own_kind(kind: &Kind) -> Value {
    let Resource { group, version, kind: name, .. } = &kind.resource;
    match kind.custom {
        None => json!({"group": "", "version": "", "kind": name}),
        Some(_) => json!({"group": group, "version": version, "kind": name}),
    }
}

fn foreign_kind(kind: &Kind, subresource: &Subresource) -> Value {
    match is_same_version(kind, subresource) {
        true => json!({"group": "", "version": "", "kind": subresource.kind}),
        false => json!({"group": subresource.group, "version": subresource.version, "kind": subresource.kind}),
    }
}

fn is_same_version(kind: &Kind, subresource: &Subresource) -> bool {
    kind.resource.group == subresource.group && kind.resource.version == subresource.version
}

/// The entry of a resource, followed by those of its subresources.
fn resources(kind: &Kind) -> Vec<Value> {
    let Resource { plural, singular, namespaced, short_names, categories, .. } = &kind.resource;
    let mut entry = json!({
        "name": plural, "singularName": singular, "namespaced": namespaced,
        "kind": kind.resource.kind, "verbs": verbs(kind)
    });
    extend(&mut entry, "shortNames", json!(short_names));
    extend(&mut entry, "categories", json!(categories));
    if let Some(hash) = storage_version_hash(kind) {
        entry["storageVersionHash"] = json!(hash);
    }
    let subresource = |subresource: &Subresource| {
        let mut entry = json!({
            "name": format!("{plural}/{}", subresource.name), "singularName": "", "namespaced": namespaced,
            "kind": subresource.kind, "verbs": subresource.verbs
        });
        if !is_same_version(kind, subresource) {
            entry["group"] = json!(subresource.group);
            entry["version"] = json!(subresource.version);
        }
        entry
    };
    std::iter::once(entry).chain(kind.resource.subresources.iter().map(subresource)).collect()
}

/// What can be done with a kind; one that is on its way out takes nothing new.
fn verbs(kind: &Kind) -> Vec<&str> {
    let ending = kind.custom.as_ref().is_some_and(|custom| custom.is_terminating());
    let verbs = kind.resource.verbs.iter().map(|verb| &**verb);
    verbs.filter(|verb| !ending || !matches!(*verb, "create" | "patch" | "update")).collect()
}

fn extend(entry: &mut Value, field: &str, items: Value) {
    if items.as_array().is_some_and(|items| !items.is_empty()) {
        entry[field] = items;
    }
}

// k8s.io/apiserver, `discovery.StorageVersionHash`
fn storage_version_hash(kind: &Kind) -> Option<String> {
    let Some(custom) = &kind.custom else {
        return kind.resource.storage_version_hash.as_deref().map(str::to_owned);
    };
    let Resource { group, kind, .. } = &kind.resource;
    let hash = Sha256::digest(format!("{group}/{}/{kind}", custom.storage_version));
    Some(BASE64_STANDARD.encode(&hash[..8]))
}

/// Where a built-in group stands in the table of kinds; custom groups stand behind all of them.
fn rank(group: &str) -> usize {
    let resources = &kinds::builtin().resources;
    resources.iter().position(|resource| &*resource.group == group).unwrap_or(resources.len())
}

/// `v2` > `v1` > `v2beta1` > `v1beta2` > `v1alpha1` > anything else, by name.
// apimachinery, `version.CompareKubeAwareVersionStrings`
fn priority(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let other = (0, 0, 0, Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other;
    };
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let (stability, minor) = match rest {
        "" => (3, Ok(0)),
        _ if rest.starts_with("beta") => (2, rest["beta".len()..].parse()),
        _ if rest.starts_with("alpha") => (1, rest["alpha".len()..].parse()),
        _ => return other,
    };
    match (major.parse(), minor) {
        (Ok(major), Ok(minor)) => (stability, major, minor, Reverse(String::new())),
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_version_is_stable_and_high() {
        let mut versions = [
            "v1alpha1",
            "foo1",
            "v10",
            "v1",
            "v2beta1",
            "v1beta2",
            "v2",
            "v11alpha2",
            "bar",
            "v3x",
        ];

        versions.sort_by_key(|version| Reverse(priority(version)));

        let expected = [
            "v10",
            "v2",
            "v1",
            "v2beta1",
            "v1beta2",
            "v11alpha2",
            "v1alpha1",
            "bar",
            "foo1",
            "v3x",
        ];
        assert_eq!(versions, expected);
    }
}
