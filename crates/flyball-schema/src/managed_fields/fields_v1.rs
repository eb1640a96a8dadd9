//! FieldsV1: a set of paths as the JSON that objects carry in `metadata.managedFields`.

use super::field_set::{FieldNode, FieldSet};
use super::path::{ParseError, PathElement};
use crate::go_text;
use serde_json::{Map, Value};

/// Reads FieldsV1; `None` if it is damaged.
pub(super) fn decode(fields: &Value) -> Option<FieldSet<'_>> {
    match fields {
        Value::Null => Some(FieldSet::default()),
        Value::Object(fields) => decode_below(fields).map(|(set, _)| set),
        _ => None,
    }
}

/// What is below a path, and whether the path itself is a member. A path with nothing below is one.
// structured-merge-diff, fieldpath/serialize.go, readIterV1
fn decode_below(fields: &Map<String, Value>) -> Option<(FieldSet<'_>, bool)> {
    let mut nodes = Vec::with_capacity(fields.len());
    let mut member = false;
    for (key, value) in fields {
        if key == "." {
            member = true;
            continue;
        }
        let element = match PathElement::parse(key) {
            Ok(element) => element,
            Err(ParseError::Unknown) => continue,
            Err(ParseError::Malformed) => return None,
        };
        let (below, below_member) = match value {
            Value::Object(below) => decode_below(below)?,
            Value::Null => (FieldSet::default(), true),
            _ => return None,
        };
        nodes.push(FieldNode { element, member: below_member, below });
    }
    let set = FieldSet::from_nodes(nodes);
    let member = member || set.is_empty();
    Some((set, member))
}

/// Writes FieldsV1 as text, in the order of its paths: fields, then items by key, by value and by index.
pub(super) fn text(set: &FieldSet<'_>, member: bool, out: &mut String) {
    out.push('{');
    if member && !set.is_empty() {
        out.push_str("\".\":{},");
    }
    for (index, node) in set.nodes.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let mut key = String::new();
        node.element.write(&mut key);
        out.push_str(&go_text::json(&Value::String(key)));
        out.push(':');
        text(&node.below, node.member, out);
    }
    out.push('}');
}

/// Writes FieldsV1 as a value.
pub(super) fn encode(set: &FieldSet<'_>) -> Value {
    let mut fields = Map::new();
    for node in &set.nodes {
        let mut key = String::new();
        node.element.write(&mut key);
        let Value::Object(mut below) = encode(&node.below) else {
            unreachable!("encode writes objects")
        };
        if node.member && !node.below.is_empty() {
            below.insert(".".into(), Value::Object(Map::new()));
        }
        fields.insert(key, Value::Object(below));
    }
    Value::Object(fields)
}
