//! From the version in which an object is stored to the version in which it is asked for, and back.

use crate::registry::{Kind, convert, object};
use bytes::Bytes;
use serde_json::Value;

impl Kind {
    /// Whether stored bytes are what this version shows, as they are.
    pub(crate) fn is_present(&self, stored: &Bytes, revision: u64) -> bool {
        let since = self.custom.as_ref().map_or(0, |custom| custom.since);
        revision >= since && stored.starts_with(self.head().as_bytes())
    }

    /// A stored object in this version.
    pub(crate) fn present(&self, stored: &Bytes, revision: u64) -> Bytes {
        match self.is_present(stored, revision) {
            true => stored.clone(),
            false => object::encode_unstored(&self.present_value(stored, revision)),
        }
    }

    /// A stored object in this version, decoded.
    pub(crate) fn present_value(&self, stored: &Bytes, revision: u64) -> Value {
        let mut value = object::decode(stored);
        if !self.is_present(stored, revision) {
            convert::from_stored(self, &mut value);
        }
        value
    }

    /// An object of this version as it is stored.
    pub(crate) fn stored(&self, mut value: Value) -> flyball_store::Value {
        convert::to_stored(self, &mut value);
        object::encode(&value)
    }
}
