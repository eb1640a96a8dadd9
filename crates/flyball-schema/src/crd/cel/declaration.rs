//! What a structural schema declares to expressions: types, and how large their values may be.
// apiserver/pkg/cel/common/schemas.go, SchemaDeclType; apiserver/pkg/cel/types.go

use super::escape::{escape, unescape_keyword};
use crate::crd::props::{Additional, Props};
use flyball_cel::{Env, Type};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The largest request that estimates assume, in bytes.
pub(super) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;
const MAX_DURATION_BYTES: u64 = 32;
const MAX_DATE_TIME_BYTES: u64 = 32;
const DATE_BYTES: u64 = 12;

/// The declared type of a value.
#[derive(Debug)]
pub(crate) struct Declaration {
    pub(crate) kind: Kind,
    /// The most code points, elements or entries that a value may have.
    pub(crate) max_elements: u64,
    /// The fewest bytes that a value takes in JSON.
    pub(crate) min_bytes: u64,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Scalar(Type),
    List(Arc<Declaration>),
    Map(Arc<Declaration>),
    /// Fields by their names in expressions.
    Object(BTreeMap<Arc<str>, Arc<Declaration>>),
}

/// What a schema declares; none if its values cannot be seen by expressions.
pub(super) fn declare(props: Props<'_>, is_resource: bool) -> Option<Arc<Declaration>> {
    if props.int_or_string() {
        let most = props.count("maxLength").map_or(MAX_REQUEST_BYTES - 2, |length| length.saturating_mul(4));
        return Some(scalar(Type::Dyn, most, 1));
    }
    match props.kind() {
        "array" => list(props),
        "object" => object(props, is_resource),
        "string" => Some(text(props)),
        "boolean" => Some(scalar(Type::Bool, 0, 4)),
        "number" => Some(scalar(Type::Double, 0, 1)),
        "integer" => Some(scalar(Type::Int, 0, 1)),
        _ => None,
    }
}

fn scalar(kind: Type, max_elements: u64, min_bytes: u64) -> Arc<Declaration> {
    Arc::new(Declaration { kind: Kind::Scalar(kind), max_elements, min_bytes })
}

fn list(props: Props<'_>) -> Option<Arc<Declaration>> {
    let items = props.items()?;
    let items = declare(items, items.embeds_resource())?;
    let unbounded = || (MAX_REQUEST_BYTES - 2) / (items.min_bytes + 1);
    let max_elements = props.count("maxItems").unwrap_or_else(unbounded);
    Some(Arc::new(Declaration { kind: Kind::List(items), max_elements, min_bytes: 2 }))
}

fn object(props: Props<'_>, is_resource: bool) -> Option<Arc<Declaration>> {
    if let Some(Additional::Schema(values)) = props.additional() {
        let values = declare(values, values.embeds_resource())?;
        let unbounded = || (MAX_REQUEST_BYTES - 2) / (values.min_bytes + 6);
        let max_elements = props.count("maxProperties").unwrap_or_else(unbounded);
        return Some(Arc::new(Declaration { kind: Kind::Map(values), max_elements, min_bytes: 2 }));
    }
    let required = props.texts("required");
    let mut fields = BTreeMap::new();
    let mut min_bytes = 2;
    for (name, property) in properties(props, is_resource) {
        let Some(declared) = declare(property, property.embeds_resource()) else {
            continue;
        };
        if required.contains(&name) && property.get("default").is_none() {
            min_bytes += name.len() as u64 + declared.min_bytes + 4;
        }
        if let Some(escaped) = escape(name) {
            fields.insert(escaped.into(), declared);
        }
    }
    Some(Arc::new(Declaration { kind: Kind::Object(fields), max_elements: 0, min_bytes }))
}

fn text(props: Props<'_>) -> Arc<Declaration> {
    let length = props.count("maxLength");
    match props.text("format") {
        "byte" => scalar(Type::Bytes, length.unwrap_or(MAX_REQUEST_BYTES - 2), 2),
        "duration" => scalar(Type::Duration, MAX_DURATION_BYTES, 3),
        "date" => scalar(Type::Timestamp, DATE_BYTES, DATE_BYTES),
        "date-time" => scalar(Type::Timestamp, MAX_DATE_TIME_BYTES, 21),
        _ => {
            let listed = props.list("enum").iter().map(|value| value.as_str().map_or(0, str::len) as u64).max();
            let most = length.map(|length| length.saturating_mul(4)).or(listed);
            scalar(Type::String, most.unwrap_or(MAX_REQUEST_BYTES - 2), 2)
        }
    }
}

/// The properties of an object; every resource has `apiVersion`, `kind` and the names of its metadata.
// model.WithTypeAndObjectMeta
pub(super) fn properties<'a>(props: Props<'a>, is_resource: bool) -> Vec<(&'a str, Props<'a>)> {
    static TEXT: LazyLock<Value> = LazyLock::new(|| json!({"type": "string"}));
    static METADATA: LazyLock<Value> = LazyLock::new(
        || json!({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}),
    );
    let mut declared = props.properties();
    if !is_resource || declares_metadata(props) {
        return declared;
    }
    declared.retain(|(name, _)| !crate::prune::is_meta(name));
    declared.push(("apiVersion", Props::of(&TEXT)));
    declared.push(("kind", Props::of(&TEXT)));
    declared.push(("metadata", Props::of(&METADATA)));
    declared.sort_unstable_by_key(|(name, _)| *name);
    declared
}

fn declares_metadata(props: Props<'_>) -> bool {
    let is = |props: Props<'_>, name: &str, kind: &str| props.property(name).is_some_and(|field| field.kind() == kind);
    let names = |metadata| is(metadata, "name", "string") && is(metadata, "generateName", "string");
    is(props, "kind", "string")
        && is(props, "apiVersion", "string")
        && is(props, "metadata", "object")
        && props.property("metadata").is_some_and(names)
}

impl Declaration {
    /// The type in expressions. Objects are named after their place below `name`, and declared in the environment.
    pub(crate) fn declare_in(&self, mut env: Env, name: &str) -> (Env, Type) {
        match &self.kind {
            Kind::Scalar(kind) => (env, kind.clone()),
            Kind::List(items) => {
                let (env, items) = items.declare_in(env, &format!("{name}.@idx"));
                (env, Type::list(items))
            }
            Kind::Map(values) => {
                let (env, values) = values.declare_in(env, &format!("{name}.@elem"));
                (env, Type::map(Type::String, values))
            }
            Kind::Object(fields) => {
                let mut types = Vec::with_capacity(fields.len());
                for (field, declared) in fields {
                    let kind;
                    (env, kind) = declared.declare_in(env, &format!("{name}.{field}"));
                    // A field whose name is a keyword may be selected by the keyword, too.
                    if let Some(keyword) = unescape_keyword(field) {
                        types.push((keyword, kind.clone()));
                    }
                    types.push((&**field, kind));
                }
                (env.object(name, types), Type::object(name))
            }
        }
    }

    /// The declaration of a field, by its name in expressions.
    pub(super) fn field(&self, name: &str) -> Option<&Arc<Declaration>> {
        match &self.kind {
            Kind::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The declaration of items or values.
    pub(super) fn element(&self) -> Option<&Arc<Declaration>> {
        match &self.kind {
            Kind::List(element) | Kind::Map(element) => Some(element),
            _ => None,
        }
    }
}
