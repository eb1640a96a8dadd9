//! Discovery documents: one per group and version, or all groups in one document (`apidiscovery.k8s.io/v2`).

use crate::encoding::document::Document;
use crate::registry::{Group, Kind, Served, Version};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use flyball_schema::resource::{Resource, Subresource};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

impl Served {
    /// `/apis`: every group but the core one.
    pub(crate) fn group_list(&self) -> Value {
        let groups: Vec<Value> = self.named_groups().map(|group| group.describe()).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/api` in its aggregated form.
    pub(crate) fn aggregated_core(&self) -> &Document {
        self.core.get_or_init(|| aggregated(self.group("").into_iter()))
    }

    /// `/apis` in its aggregated form.
    pub(crate) fn aggregated(&self) -> &Document {
        self.named.get_or_init(|| aggregated(self.named_groups()))
    }

    fn named_groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.groups().into_iter().filter(|group| !group.name.is_empty())
    }
}

impl Group {
    /// `/apis/<group>`
    pub(crate) fn list(&self) -> Value {
        let mut group = self.describe();
        group["kind"] = json!("APIGroup");
        group["apiVersion"] = json!("v1");
        group
    }

    fn describe(&self) -> Value {
        let version = |version: &Arc<Version>| {
            let group_version = group_version(&self.name, &version.name);
            json!({"groupVersion": group_version, "version": version.name})
        };
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        json!({"name": &*self.name, "versions": versions, "preferredVersion": versions.first()})
    }

    /// The group's entry in aggregated discovery, encoded once.
    fn aggregated(&self) -> &Bytes {
        self.discovery.get_or_init(|| {
            let version = |version: &Arc<Version>| {
                let resources: Vec<Value> = version.kinds.iter().map(|kind| aggregated_resource(kind)).collect();
                json!({"version": version.name, "resources": resources, "freshness": "Current"})
            };
            let versions: Vec<Value> = self.versions.iter().map(version).collect();
            let mut metadata = json!({});
            if !self.name.is_empty() {
                metadata["name"] = json!(&*self.name);
            }
            json!({"metadata": metadata, "versions": versions}).to_string().into()
        })
    }
}

impl Version {
    /// `/apis/<group>/<version>`
    pub(crate) fn list(&self, group: &str) -> Value {
        let resources: Vec<Value> = self.kinds.iter().flat_map(|kind| resources(kind)).collect();
        let group_version = group_version(group, &self.name);
        let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
        // The APIResourceList of the core group predates versioned lists.
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

fn aggregated<'a>(groups: impl Iterator<Item = &'a Arc<Group>>) -> Document {
    let mut json =
        br#"{"apiVersion":"apidiscovery.k8s.io/v2","kind":"APIGroupDiscoveryList","metadata":{},"items":["#.to_vec();
    for (index, group) in groups.enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend_from_slice(group.aggregated());
    }
    json.extend_from_slice(b"]}");
    Document::encoded(json)
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
