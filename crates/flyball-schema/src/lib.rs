//! What Kubernetes does to JSON, as pure functions over one model of types.
//! No I/O, no clock, no runtime: any JSON in, a value or a list of violations out.

pub mod builtin;
pub(crate) mod client_config;
pub mod crd;
pub mod decode;
pub mod default;
pub mod definition;
pub mod go_duration;
pub mod go_text;
pub mod json_patch;
pub mod jsonpath;
pub mod kinds;
pub mod managed_fields;
pub mod merge_patch;
pub mod metadata;
pub mod names;
pub mod pattern;
mod place;
pub mod policy;
pub mod print;
pub mod protobuf;
pub mod prune;
pub mod quantity;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod strategic_merge;
pub mod validate;
pub mod violation;
