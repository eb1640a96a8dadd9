//! From an answer to bytes: content negotiation, JSON, YAML, protobuf, Table and gzip.

pub mod document;
pub mod gzip;
pub mod negotiate;
pub mod output;
pub mod wire;
pub(crate) mod yaml;
