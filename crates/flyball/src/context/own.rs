//! Whose a child is: where it may be, and how it names its owner.

use crate::cache::kind::{Kind, Scope};
use crate::context::Context;
use crate::{Key, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

/// How a child belongs to the object that applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// It is its only controller's.
    Controlled,
    /// It is one of several owners', and goes with the last.
    Shared,
}

/// Why a child cannot belong to its owner.
#[derive(Debug, thiserror::Error)]
pub(super) enum OwnershipError {
    #[error("apply {0}: a child must be an object with metadata")]
    NoObject(String),
    #[error("apply {kind} {key}: a child lives in its owner's namespace, which is {owner}")]
    OtherNamespace { kind: String, key: Key, owner: String },
    #[error("apply {kind} {key}: a cluster-scoped object cannot belong to one in a namespace")]
    Cluster { kind: String, key: Key },
    #[error("apply {kind} {key}: its owner is cluster-scoped, so it needs a namespace of its own")]
    NoNamespace { kind: String, key: Key },
    #[error("apply {kind} {key}: an object cannot be its own child")]
    Itself { kind: String, key: Key },
}

impl Context {
    /// A reference to the object being reconciled as the controller of a child. A child has one controller at most.
    ///
    /// [`Context::apply`] sets it; this is for children that are made through the client. The API server takes references
    /// across namespaces without a word and its garbage collector deletes such children, so keep to the owner's namespace.
    pub fn controller_reference(&self) -> OwnerReference {
        OwnerReference {
            controller: Some(true),
            block_owner_deletion: Some(true),
            ..self.owner_reference()
        }
    }

    /// A reference to the object being reconciled as one of any number of owners: the child goes with the last of them.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind().resource.api_version.clone(),
            kind: self.kind().name().into(),
            name: self.object.key.name().into(),
            uid: self.object.uid.to_string(),
            controller: None,
            block_owner_deletion: None,
        }
    }

    /// Makes a child this object's: gives it a name, a place and a reference to its owner.
    pub(super) fn adopt(
        &self,
        kind: &Kind,
        mut child: Value,
        ownership: Ownership,
    ) -> Result<(Key, Value), OwnershipError> {
        let no_object = || OwnershipError::NoObject(kind.name().into());
        let root = child.as_object_mut().ok_or_else(no_object)?;
        root.insert("apiVersion".into(), kind.resource.api_version.clone().into());
        root.insert("kind".into(), kind.name().into());
        let metadata = root.entry("metadata").or_insert_with(|| json!({}));
        let metadata = metadata.as_object_mut().ok_or_else(no_object)?;
        let text =
            |field: Option<&Value>| field.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let name = text(metadata.get("name")).unwrap_or_else(|| self.object.key.name().into());
        let key = self.place(kind, Key::from(name).in_namespace(text(metadata.get("namespace")).as_deref()))?;
        metadata.insert("name".into(), key.name().into());
        if let Some(namespace) = key.namespace() {
            metadata.insert("namespace".into(), namespace.into());
        }
        let reference = match ownership {
            Ownership::Controlled => self.controller_reference(),
            Ownership::Shared => self.owner_reference(),
        };
        let owners = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
        let owners = owners.as_array_mut().ok_or_else(no_object)?;
        owners.retain(|owner| owner["uid"] != reference.uid);
        owners.push(serde_json::to_value(reference).expect("a reference is JSON"));
        Ok((key, child))
    }

    /// Sets the kind of an object without an owner, and the namespace of the object being reconciled if it has none.
    pub(super) fn placed(&self, kind: &Kind, mut object: Value) -> Result<(Key, Value), OwnershipError> {
        let no_object = || OwnershipError::NoObject(kind.name().into());
        let root = object.as_object_mut().ok_or_else(no_object)?;
        root.insert("apiVersion".into(), kind.resource.api_version.clone().into());
        root.insert("kind".into(), kind.name().into());
        let metadata = root.entry("metadata").or_insert_with(|| json!({}));
        let metadata = metadata.as_object_mut().ok_or_else(no_object)?;
        let text = |field: Option<&Value>| field.and_then(Value::as_str).map(str::to_owned);
        let key = Key::new(
            text(metadata.get("namespace")).as_deref(),
            &text(metadata.get("name")).unwrap_or_default(),
        );
        let key = match kind.scope {
            Scope::Cluster => key,
            _ => key.in_namespace(self.object.key.namespace()),
        };
        if kind.scope == Scope::Namespaced && key.namespace().is_none() {
            return Err(OwnershipError::NoNamespace { kind: kind.name().into(), key });
        }
        if let Some(namespace) = key.namespace() {
            metadata.insert("namespace".into(), namespace.into());
        }
        Ok((key, object))
    }

    /// Where a child goes, if it may go there: an owner is in the child's namespace, or in none.
    fn place(&self, kind: &Kind, key: Key) -> Result<Key, OwnershipError> {
        let (name, owner) = (kind.name().to_owned(), &self.object.key);
        let key = if kind.scope == Scope::Cluster {
            key
        } else {
            key.in_namespace(owner.namespace())
        };
        match (key.namespace(), owner.namespace()) {
            _ if key == *owner && kind.id() == self.kind().id() => Err(OwnershipError::Itself { kind: name, key }),
            (None, Some(_)) => Err(OwnershipError::Cluster { kind: name, key }),
            (None, None) if kind.scope == Scope::Namespaced => Err(OwnershipError::NoNamespace { kind: name, key }),
            (Some(child), Some(owner)) if child != owner => {
                Err(OwnershipError::OtherNamespace { owner: owner.to_owned(), kind: name, key })
            }
            _ => Ok(key),
        }
    }
}
