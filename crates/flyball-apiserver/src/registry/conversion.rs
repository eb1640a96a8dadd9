//! Conversion between the version in which an object is stored and the version of a request, in both directions.
// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, crdConversionRESTOptionsGetter

use crate::kinds::spec::Conversion;
use crate::registry::{CrdVersion, Kind, object};
use bytes::Bytes;
use flyball_schema::{default, prune};
use serde_json::Value;

impl Kind {
    /// Whether stored bytes need no conversion: they are of this version, and written with its current schema.
    fn is_stored_as_served(&self, stored: &Bytes, revision: u64) -> bool {
        let since = self.custom.as_ref().map_or(0, |custom| custom.since);
        revision >= since && stored.starts_with(self.head().as_bytes())
    }

    /// Converts a stored object to this version.
    pub(crate) fn convert_from_storage(&self, stored: &Bytes, revision: u64) -> Bytes {
        match self.is_stored_as_served(stored, revision) {
            true => stored.clone(),
            false => object::encode_unstored(&self.decode_from_storage(stored, revision)),
        }
    }

    /// Decodes a stored object and converts it to this version.
    pub(crate) fn decode_from_storage(&self, stored: &Bytes, revision: u64) -> Value {
        let mut value = object::decode(stored);
        if !self.is_stored_as_served(stored, revision) {
            to_requested_version(self, &mut value);
        }
        value
    }

    /// Encodes an object that a dry run does not store, as a read after the write would return it.
    pub(crate) fn encode_dry_run(&self, mut value: Value) -> Bytes {
        if self.custom.is_some() {
            to_storage_version(self, &mut value);
            to_requested_version(self, &mut value);
        }
        object::encode_unstored(&value)
    }

    /// Encodes an object of this version in the version in which it is stored.
    pub(crate) fn encode_for_storage(&self, mut value: Value) -> flyball_store::Value {
        to_storage_version(self, &mut value);
        object::encode(&value)
    }
}

/// Converts a stored object to the version of a kind. A custom resource is pruned and defaulted by the version it is
/// stored in, then pruned by the requested version.
fn to_requested_version(kind: &Kind, object: &mut Value) {
    if let Some(custom) = &kind.custom {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let stored_in = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        prune(custom, &stored_in, object);
        fill(custom, &stored_in, object);
        if *kind.resource.version != *stored_in {
            prune(custom, &kind.resource.version, object);
        }
    }
    if let Some(conversion) = conversion(kind) {
        (conversion.from_storage)(object);
    }
    object["apiVersion"] = kind.resource.api_version().into();
}

/// Converts an object of a kind to the version in which it is stored. A custom resource is stored with the defaults
/// that every read would add, such as those below `status`, so that readers share its bytes as they are.
fn to_storage_version(kind: &Kind, object: &mut Value) {
    if let Some(conversion) = conversion(kind) {
        (conversion.to_storage)(object);
    }
    if let Some(custom) = &kind.custom {
        object["apiVersion"] = format!("{}/{}", kind.resource.group, custom.storage_version).into();
        if *kind.resource.version != custom.storage_version {
            prune(custom, &custom.storage_version, object);
        }
        fill(custom, &custom.storage_version, object);
    }
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
