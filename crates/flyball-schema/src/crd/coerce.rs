//! What decoding does to a custom resource before anything else: metadata becomes metadata, unknown fields go.
// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, unstructuredSchemaCoercer,
// and pkg/apiserver/schema/objectmeta/algorithm.go

use super::Structural;
use crate::decode::{self, DecodeError};
use crate::go_text;
use crate::kinds;
use crate::place::Place;
use crate::prune;
use crate::schema::{Form, Node};
use crate::violation::Violation;
use serde_json::{Map, Value};

pub(super) fn coerce(structural: &Structural, value: &mut Value) -> Result<Vec<String>, DecodeError> {
    let node = structural.node();
    let mut complaints = Vec::new();
    if let Some(metadata) = value.get_mut("metadata") {
        complaints.extend(coerce_metadata(metadata, "metadata").map_err(DecodeError::Type)?);
    }
    let dropped = prune::prune(node, value);
    complaints.extend(dropped.iter().map(|path| format!("unknown field {}", go_text::quote(path))));
    prune::prune_nulls(node, value);
    complaints.extend(coerce_embedded(node, value)?);
    Ok(complaints)
}

/// Makes metadata of the metadata of resources in a custom resource, and checks that they are resources.
pub(super) fn coerce_embedded(node: Node<'_>, value: &mut Value) -> Result<Vec<String>, DecodeError> {
    let mut embedded = Embedded { complaints: Vec::new() };
    embedded
        .value(node, value, &Place::root())
        .map_err(|violation| DecodeError::Type(violation.to_string()))?;
    embedded.complaints.sort_unstable();
    Ok(embedded.complaints)
}

/// Makes metadata of a value, as Go would: unknown fields are dropped and named.
fn coerce_metadata(metadata: &mut Value, path: &str) -> Result<Vec<String>, String> {
    let node = kinds::builtin().schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let node = node.expect("the table of kinds has ObjectMeta");
    decode::coerce_under(path, metadata, node).map_err(|error| match error {
        DecodeError::Json(text) | DecodeError::Yaml(text) | DecodeError::Type(text) => text,
    })
}

struct Embedded {
    complaints: Vec<String>,
}

impl Embedded {
    fn value(&mut self, node: Node<'_>, value: &mut Value, place: &Place<'_>) -> Result<(), Violation> {
        match value {
            Value::Object(fields) => {
                if node.embedded_resource {
                    self.resource(fields, place)?;
                }
                let declares = !matches!(node.form, Form::Map(_));
                for (name, field) in fields.iter_mut() {
                    let Some(inner) = node.field(name).filter(|inner| inner.type_name().is_none()) else {
                        continue;
                    };
                    let place = if declares { place.field(name) } else { place.key(name) };
                    self.value(inner, field, &place)?;
                }
            }
            Value::Array(items) => {
                let Some(inner) = node.items() else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(inner, item, &place.index(index))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resource(&mut self, fields: &mut Map<String, Value>, place: &Place<'_>) -> Result<(), Violation> {
        for name in ["apiVersion", "kind"] {
            let odd = fields.get(name).filter(|value| !value.is_string());
            if let Some(value) = odd {
                let path = place.field(name).subscripted();
                return Err(Violation::invalid(path, value.clone(), "must be a string"));
            }
        }
        let Some(metadata) = fields.get_mut("metadata") else {
            return Ok(());
        };
        let path = place.field("metadata").subscripted();
        let given = metadata.clone();
        let complaints = coerce_metadata(metadata, &path).map_err(|error| Violation::invalid(&path, given, &error))?;
        self.complaints.extend(complaints);
        Ok(())
    }
}
