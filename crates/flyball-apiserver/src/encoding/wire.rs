//! Answers in protobuf.

use crate::registry::object;
use crate::response::{Change, List};
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::protobuf::{self, EncodeError};
use serde_json::Value;

/// Whatever says of itself what it is.
pub(crate) fn object(value: &Value) -> Result<Vec<u8>> {
    protobuf::encode_object(value).map_err(|error| unwritable(&error))
}

/// A list of a built-in kind, written item by item.
pub(crate) fn list(list: &List, metadata: &Value) -> Result<Vec<u8>> {
    let resource = &list.kind.resource;
    let node = list.kind.node().ok_or_else(|| Status::internal("write a list of no type"))?;
    let items = list.items.iter().map(|item| object::decode(item));
    protobuf::encode_list((&resource.api_version(), &resource.list_kind), metadata, items, node)
        .map_err(|error| unwritable(&error))
}

/// A change as a watch sends it: with its length in front.
pub(crate) fn frame(change: Change, json: &[u8]) -> Bytes {
    let written = serde_json::from_slice(json).map_err(Status::internal).and_then(|value| object(&value));
    match written {
        Ok(bytes) => protobuf::encode_event(change.name(), &bytes).into(),
        Err(status) => {
            let bytes = object(&status.to_value()).unwrap_or_default();
            protobuf::encode_event(Change::Error.name(), &bytes).into()
        }
    }
}

fn unwritable(error: &EncodeError) -> Status {
    Status::internal(format!("write protobuf: {error}"))
}
