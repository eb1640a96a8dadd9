//! What discovery says of a kind: the same description for built-in kinds and custom resources.

use crate::schema::SchemaId;

/// One served resource in one version.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Box<str>,
    /// The version within the group.
    pub version: Box<str>,
    /// The kind, such as `Pod`.
    pub kind: Box<str>,
    /// The kind of a list of it, such as `PodList`; empty where it cannot be listed.
    pub list_kind: Box<str>,
    /// The plural name in paths, such as `pods`.
    pub plural: Box<str>,
    /// The singular name, such as `pod`.
    pub singular: Box<str>,
    /// Short names, such as `po`.
    pub short_names: Vec<Box<str>>,
    /// Categories, such as `all`.
    pub categories: Vec<Box<str>>,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with it, in discovery's words and order.
    pub verbs: Vec<Box<str>>,
    /// Its subresources, such as `status` and `scale`.
    pub subresources: Vec<Subresource>,
    /// Discovery's `storageVersionHash`; built-in kinds only.
    pub storage_version_hash: Option<Box<str>>,
    /// The type of its objects.
    pub schema: Option<SchemaId>,
}

/// One subresource of a [`Resource`].
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Its name, such as `scale`.
    pub name: Box<str>,
    /// The group of the kind it answers with.
    pub group: Box<str>,
    /// The version of the kind it answers with.
    pub version: Box<str>,
    /// The kind it answers with, such as `Scale`.
    pub kind: Box<str>,
    /// What can be done with it.
    pub verbs: Vec<Box<str>>,
    /// The type of what it answers with.
    pub schema: Option<SchemaId>,
}

impl Resource {
    /// `v1`, or `apps/v1`: what objects carry as `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods`, or `deployments.apps`: how messages name it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }
}
