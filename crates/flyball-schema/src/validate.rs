//! What is wrong with a custom resource according to its schema, in the words and the order of a real server.
//! The metadata of the object itself is left to `metadata`; rules in CEL to `crd::cel`.

mod embedded;
pub(crate) mod format;
mod keywords;
mod list_type;
mod number;
mod old;

pub(crate) use format::{is_request_uri, is_supported as is_supported_format};

use crate::place::Place;
use crate::schema::Node;
use crate::violation::Violation;
use old::Old;
use serde_json::Value;

/// What is wrong with an object that is being created.
pub fn validate(node: Node<'_>, value: &Value) -> Vec<Violation> {
    let mut found = keywords::check(node, value, None, "");
    found.extend(embedded::check(node, value, &Place::root(), ""));
    found.extend(list_type::check(node, value, &Place::root()));
    found
}

/// What is wrong with an object that is being updated; what was wrong before and has not changed is let be.
// KEP-4008, ratcheting
pub fn validate_update(node: Node<'_>, value: &Value, old: &Value) -> Vec<Violation> {
    let mut found = keywords::check(node, value, Some(Old { node, value: old }), "");
    found.extend(embedded::check(node, value, &Place::root(), ""));
    if list_type::check(node, old, &Place::root()).is_empty() {
        found.extend(list_type::check(node, value, &Place::root()));
    }
    found
}

/// What is wrong with one part of an object, such as `status`, that has a schema of its own: paths begin with the
/// part's, texts do not.
pub fn validate_part(path: &str, node: Node<'_>, value: &Value, old: Option<&Value>) -> Vec<Violation> {
    keywords::check(node, value, old.map(|value| Old { node, value }), path)
}

/// What is wrong with a default, which stands for a whole object or a part of one.
pub(crate) fn validate_default(path: &str, node: Node<'_>, value: &Value) -> Vec<Violation> {
    let found = embedded::check(node, value, &Place::root(), path);
    if found.is_empty() {
        keywords::check(node, value, None, path)
    } else {
        found
    }
}
