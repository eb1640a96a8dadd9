//! The schema of a custom resource, read from its CustomResourceDefinition, or refused for what a real server
//! refuses it for. The rest of a definition (names, versions, columns) is left to `definition`.

pub(crate) mod cel;
mod coerce;
mod convert;
mod defaults;
mod openapi;
mod props;
mod structural;
mod write;

pub use cel::{Findings, Validator};

use crate::decode::DecodeError;
use crate::schema::{Node, SchemaId, Schemas};
use crate::violation::Violation;
use cel::CostLimit;
use props::Props;
use serde_json::Value;
use std::sync::Arc;

/// The types of one version of a custom resource.
#[derive(Clone, Debug)]
pub struct Structural {
    /// The arena of its types.
    pub schemas: Schemas,
    /// The type of the object itself, with `apiVersion`, `kind` and `metadata`.
    pub root: SchemaId,
    /// The validation rules in CEL, if the schema has any.
    pub validator: Option<Arc<Validator>>,
}

impl Structural {
    /// The type of the object itself.
    pub fn node(&self) -> Node<'_> {
        self.schemas.node(self.root)
    }

    /// Does to an object what decoding does to it: makes metadata of its metadata and of that of resources in it,
    /// drops what is unknown and nulls that may not be. Returns what strict field validation has against it.
    pub fn coerce(&self, value: &mut Value) -> Result<Vec<String>, DecodeError> {
        coerce::coerce(self, value)
    }

    /// An `openAPIV3Schema` that says the same: read again, it validates, defaults and prunes as this does.
    ///
    /// ```
    /// use flyball_schema::crd::{self, Status};
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"spec": {"type": "string", "description": "Words.", "maxLength": 9}}});
    /// let read = crd::read(&schema, "schema", Status::Plain).unwrap();
    /// assert_eq!(read.to_schema()["properties"]["spec"], json!({"type": "string", "maxLength": 9}));
    /// ```
    pub fn to_schema(&self) -> Value {
        write::resource(self.node())
    }

    /// The type of an object about which nothing is known but that it is a resource.
    pub fn anything() -> Structural {
        convert::convert(Props::default())
    }
}

/// Whether `status` is a subresource; then the schema's root may have only some keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is part of the object like everything else.
    Plain,
    /// It is written through `/status` only.
    Subresource,
}

/// Reads an `openAPIV3Schema` that is being written, whose field path is given, such as
/// `spec.versions[0].schema.openAPIV3Schema`.
pub fn read(schema: &Value, path: &str, status: Status) -> Result<Structural, Vec<Violation>> {
    read_as(schema, path, status, Origin::Written(CostLimit::PerRule))
}

/// Reads a schema that is being written and is the same as the stored one: its rules may cost more than new ones.
pub fn read_unchanged(schema: &Value, path: &str, status: Status) -> Result<Structural, Vec<Violation>> {
    read_as(schema, path, status, Origin::Written(CostLimit::SchemaOnly))
}

/// Reads a schema that is stored. Rules that do not compile are kept; [`Validator::errors`] names them.
pub fn read_stored(schema: &Value, path: &str, status: Status) -> Result<Structural, Vec<Violation>> {
    read_as(schema, path, status, Origin::Stored)
}

/// Where a schema comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Written(CostLimit),
    Stored,
}

// apiextensions-apiserver/pkg/apis/apiextensions/validation, validateCustomResourceDefinitionValidation
fn read_as(schema: &Value, path: &str, status: Status, origin: Origin) -> Result<Structural, Vec<Violation>> {
    let props = Props::of(schema);
    let mut found = Vec::new();
    if status == Status::Subresource {
        found.extend(openapi::check_root(props, path));
    }
    if props.flag("nullable") {
        found.push(Violation::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let structural = openapi::is_supported(props).then(|| structural::check(props, path));
    let mut converted = None;
    match structural {
        Some(violations) if !violations.is_empty() => found.extend(violations),
        Some(_) => {
            let structural = convert::convert(props);
            let mut wrong = defaults::check(&structural, path);
            if origin != Origin::Stored {
                wrong.extend(cel::check_defaults(props, path, &wrong));
            }
            converted = Some((structural, wrong.is_empty()));
            found.extend(wrong);
        }
        None => {}
    }
    let keywords = openapi::check(props, path);
    let rules = match (&converted, origin) {
        (Some((_, true)), Origin::Written(limit)) => cel::check(props, path, &keywords, limit),
        _ => Vec::new(),
    };
    found.extend(keywords);
    found.extend(rules);
    match converted {
        Some((mut structural, _)) if found.is_empty() => {
            structural.validator = Validator::new(props, true).map(Arc::new);
            Ok(structural)
        }
        _ => Err(found),
    }
}

/// Makes metadata of the metadata of resources in a custom resource; returns what strict field validation has against it.
pub fn coerce_embedded(node: Node<'_>, value: &mut Value) -> Result<Vec<String>, DecodeError> {
    coerce::coerce_embedded(node, value)
}

/// Formats in a schema that no value is checked against, each once; a real server warns of them.
pub fn unrecognized_formats(schema: &Value) -> Vec<String> {
    let mut formats = Vec::new();
    openapi::collect_formats(Props::of(schema), &mut formats);
    formats
}
