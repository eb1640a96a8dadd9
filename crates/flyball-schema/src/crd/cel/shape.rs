//! How expressions see the JSON of a structural schema.
// apiserver/pkg/cel/common/valuesunstructured.go, UnstructuredToVal

use super::declaration::properties;
use super::escape::{escape, unescape_keyword};
use crate::crd::props::{Additional, Props};
use flyball_cel::{FieldShape, ListKind, ObjectShape, Shape, ShapeKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The shape of the values of a schema.
pub(super) fn shape(props: Props<'_>, is_resource: bool) -> Shape {
    Shape {
        kind: kind(props, is_resource),
        nullable: props.flag("nullable"),
    }
}

fn kind(props: Props<'_>, is_resource: bool) -> ShapeKind {
    if props.int_or_string() {
        return ShapeKind::IntOrString;
    }
    match props.kind() {
        "object" => object(props, is_resource || props.embeds_resource()),
        "array" => ShapeKind::List {
            items: Box::new(props.items().map_or(ShapeKind::Hidden.into(), |items| shape(items, false))),
            kind: list_kind(props),
        },
        "string" => match props.text("format") {
            "byte" => ShapeKind::Bytes,
            "duration" => ShapeKind::Duration,
            "date" => ShapeKind::Date,
            "date-time" => ShapeKind::DateTime,
            _ => ShapeKind::String,
        },
        "number" => ShapeKind::Double,
        "integer" => ShapeKind::Int,
        "boolean" => ShapeKind::Bool,
        _ => ShapeKind::Hidden,
    }
}

fn object(props: Props<'_>, is_resource: bool) -> ShapeKind {
    if let (Some(Additional::Schema(values)), false) = (props.additional(), is_resource)
        && props.properties().is_empty()
    {
        return ShapeKind::Map(Box::new(shape(values, false)));
    }
    let mut fields = BTreeMap::new();
    for (name, property) in properties(props, is_resource) {
        let field = FieldShape { json_name: name.into(), shape: shape(property, false) };
        let escaped = escaped(name);
        if let Some(keyword) = unescape_keyword(&escaped) {
            fields.insert(keyword.into(), field.clone());
        }
        fields.insert(escaped.into(), field);
    }
    ShapeKind::Object(Arc::new(ObjectShape { fields }))
}

fn list_kind(props: Props<'_>) -> ListKind {
    match props.text("x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => {
            let keys = props.texts("x-kubernetes-list-map-keys").into_iter();
            ListKind::Map(keys.map(|key| escaped(key).into()).collect())
        }
        _ => ListKind::Atomic,
    }
}

/// Names that cannot be escaped stay: no expression can name them, but objects still compare by them.
fn escaped(name: &str) -> Cow<'_, str> {
    escape(name).unwrap_or(Cow::Borrowed(name))
}
