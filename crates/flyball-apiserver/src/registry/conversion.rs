//! Conversion between the version in which an object is stored and the version of a request, in both directions. Only
//! custom resources with a conversion webhook wait for it; everything else is converted at once.
// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, crdConversionRESTOptionsGetter

pub(crate) mod webhook;

use crate::kinds::spec::Conversion;
use crate::registry::{CrdVersion, Kind, object};
use crate::status::Result;
use bytes::Bytes;
use flyball_schema::{default, prune};
use flyball_store::Entry;
use serde_json::Value;

impl Kind {
    /// Whether stored bytes need no conversion: they are of this version, and written with its current schema.
    fn is_stored_as_served(&self, stored: &Bytes, revision: u64) -> bool {
        let since = self.custom.as_ref().map_or(0, |custom| custom.since);
        revision >= since && stored.starts_with(self.head().as_bytes())
    }

    /// Whether stored bytes are of the version in which new ones are stored.
    pub(crate) fn is_in_storage_version(&self, stored: &Bytes) -> bool {
        let is_in = |custom: &CrdVersion| version_of(&object::decode(stored)) == custom.storage_version;
        self.custom.as_ref().is_none_or(is_in)
    }

    /// Converts a stored object to this version.
    pub(crate) async fn convert_from_storage(&self, stored: &Bytes, revision: u64) -> Result<Bytes> {
        match self.is_stored_as_served(stored, revision) {
            true => Ok(stored.clone()),
            false => Ok(object::encode_unstored(&self.decode_from_storage(stored, revision).await?)),
        }
    }

    /// Converts stored objects to this version, all in one call if that takes a webhook.
    pub(crate) async fn convert_entries(&self, entries: &[Entry]) -> Result<Vec<Bytes>> {
        let mut converted: Vec<Bytes> = entries.iter().map(|entry| entry.value.clone()).collect();
        let is_other = |entry: &Entry| !self.is_stored_as_served(&entry.value, entry.revision);
        let others: Vec<usize> = (0..entries.len()).filter(|index| is_other(&entries[*index])).collect();
        let objects = others.iter().map(|index| object::decode(&entries[*index].value)).collect();
        let objects = to_requested_version(self, objects).await?;
        for (index, object) in others.into_iter().zip(objects) {
            converted[index] = object::encode_unstored(&object);
        }
        Ok(converted)
    }

    /// Decodes a stored object and converts it to this version.
    pub(crate) async fn decode_from_storage(&self, stored: &Bytes, revision: u64) -> Result<Value> {
        let value = object::decode(stored);
        match self.is_stored_as_served(stored, revision) {
            true => Ok(value),
            false => Ok(to_requested_version(self, vec![value]).await?.pop().unwrap_or_default()),
        }
    }

    /// Encodes an object that a dry run does not store, as a read after the write would return it.
    pub(crate) async fn encode_dry_run(&self, mut value: Value) -> Result<Bytes> {
        if self.custom.is_some() {
            value = to_storage_version(self, value).await?;
            value = to_requested_version(self, vec![value]).await?.pop().unwrap_or_default();
        }
        Ok(object::encode_unstored(&value))
    }

    /// Encodes an object of this version in the version in which it is stored.
    pub(crate) async fn encode_for_storage(&self, value: Value) -> Result<flyball_store::Value> {
        Ok(object::encode(&to_storage_version(self, value).await?))
    }

    /// The same for a built-in kind, which needs no webhook.
    pub(crate) fn encode_built_in(&self, mut value: Value) -> flyball_store::Value {
        if let Some(conversion) = conversion(self) {
            (conversion.to_storage)(&mut value);
        }
        object::encode(&value)
    }

    /// Converts an object of this kind to another version of it, or to the kind of another group that shares its objects.
    pub(crate) async fn convert_to(&self, other: &Kind, mut object: Value) -> Result<Value> {
        if object.is_null() {
            return Ok(object);
        }
        if let Some(custom) = &other.custom {
            let mut converted = convert(custom, &other.resource.version, vec![object]).await?;
            let mut object = converted.pop().unwrap_or_default();
            prune(custom, &other.resource.version, &mut object);
            return Ok(object);
        }
        if let Some(conversion) = conversion(self) {
            (conversion.to_storage)(&mut object);
        }
        if let Some(conversion) = conversion(other) {
            (conversion.from_storage)(&mut object);
        }
        object["apiVersion"] = other.resource.api_version().into();
        object["kind"] = (&*other.resource.kind).into();
        Ok(object)
    }
}

/// Converts stored objects to the version of a kind. A custom resource is pruned and defaulted by the version it is
/// stored in, then pruned by the requested version.
async fn to_requested_version(kind: &Kind, mut objects: Vec<Value>) -> Result<Vec<Value>> {
    let Some(custom) = &kind.custom else {
        for object in &mut objects {
            if let Some(conversion) = conversion(kind) {
                (conversion.from_storage)(object);
            }
            object["apiVersion"] = kind.resource.api_version().into();
        }
        return Ok(objects);
    };
    let mut is_other = Vec::with_capacity(objects.len());
    for object in &mut objects {
        let stored_in = version_of(object);
        prune(custom, &stored_in, object);
        fill(custom, &stored_in, object);
        is_other.push(*kind.resource.version != *stored_in);
    }
    let mut objects = convert(custom, &kind.resource.version, objects).await?;
    for (object, _) in objects.iter_mut().zip(is_other).filter(|(_, is_other)| *is_other) {
        prune(custom, &kind.resource.version, object);
    }
    Ok(objects)
}

/// Converts an object of a kind to the version in which it is stored. A custom resource is stored with the defaults
/// that every read would add, such as those below `status`, so that readers share its bytes as they are.
async fn to_storage_version(kind: &Kind, mut object: Value) -> Result<Value> {
    let Some(custom) = &kind.custom else {
        if let Some(conversion) = conversion(kind) {
            (conversion.to_storage)(&mut object);
        }
        return Ok(object);
    };
    if *kind.resource.version != custom.storage_version {
        object = convert(custom, &custom.storage_version, vec![object]).await?.pop().unwrap_or_default();
        prune(custom, &custom.storage_version, &mut object);
    }
    fill(custom, &custom.storage_version, &mut object);
    Ok(object)
}

/// Converts custom resources to a version, as their definition says: by its webhook, or by a change of `apiVersion`.
async fn convert(custom: &CrdVersion, version: &str, mut objects: Vec<Value>) -> Result<Vec<Value>> {
    let group = custom.name.split_once('.').map_or("", |(_, group)| group);
    let api_version = format!("{group}/{version}");
    match &custom.conversion {
        Some(webhook) => webhook.convert(&api_version, objects).await,
        None => {
            objects.iter_mut().for_each(|object| object["apiVersion"] = api_version.as_str().into());
            Ok(objects)
        }
    }
}

fn version_of(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    api_version.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The conversion of a built-in kind's version, unless that is the storage version.
fn conversion(kind: &Kind) -> Option<&'static Conversion> {
    kind.spec
        .conversion
        .as_ref()
        .filter(|conversion| conversion.version == &*kind.resource.version)
}

fn prune(custom: &CrdVersion, version: &str, object: &mut Value) {
    if let Some(structural) = custom.schemas.version(version) {
        prune::prune(structural.node(), object);
        prune::prune_nulls(structural.node(), object);
    }
}

fn fill(custom: &CrdVersion, version: &str, object: &mut Value) {
    if let Some(structural) = custom.schemas.version(version) {
        default::default(structural.node(), object);
    }
}
