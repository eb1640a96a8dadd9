//! The selectors of a list, a watch or a deletecollection, and what they compare of an object.

use crate::kinds::spec::SelectableField;
use crate::registry::{Kind, object};
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::selector::{FieldSelector, LabelSelector};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::OnceLock;

/// Selects objects by name, labels and fields.
#[derive(Clone, Default)]
pub(crate) struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
    name: Option<String>,
}

impl Filter {
    /// Reads the selectors of a request.
    pub fn read(request: &ResourceRequest, options: &ListOptions) -> Result<Filter> {
        let labels = options.label_selector.as_deref().unwrap_or_default();
        let labels = LabelSelector::from_str(labels).map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = options.field_selector.as_deref().unwrap_or_default();
        let fields = FieldSelector::from_str(fields).map_err(|error| Status::bad_request(error.to_string()))?;
        for requirement in &fields.requirements {
            check_field(&request.kind, &requirement.field)?;
        }
        let path_name = request.target.name.clone();
        let name = path_name.or_else(|| fields.exact("metadata.name").map(str::to_owned));
        Ok(Filter { labels, fields, name })
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none()
    }

    /// Whether an encoded object of a kind is selected.
    pub fn selects(&self, kind: &Kind, object: impl FnOnce() -> Bytes) -> bool {
        self.is_empty() || self.matches(kind, &Attributes::of(object()))
    }

    /// Whether an object of a kind with these attributes is selected.
    pub fn matches(&self, kind: &Kind, attributes: &Attributes) -> bool {
        if self.name.as_deref().is_some_and(|name| name != attributes.name) {
            return false;
        }
        self.labels.matches(attributes.labels.as_ref())
            && (self.fields.is_empty() || self.fields.matches(|field| attributes.field(kind, field)))
    }
}

/// What selectors compare of one object: decoded once, however many selectors there are.
pub(crate) struct Attributes {
    object: Bytes,
    name: String,
    labels: Option<Map<String, Value>>,
    fields: OnceLock<HashMap<String, String>>,
}

impl Attributes {
    /// The attributes of an encoded object.
    pub fn of(object: Bytes) -> Attributes {
        let metadata = object::peek(&object).metadata;
        let (name, labels) = (metadata.name.into_owned(), metadata.labels);
        Attributes { object, name, labels, fields: OnceLock::new() }
    }

    /// The value of a selectable field as selectors compare it. All fields are extracted when the first is asked for.
    fn field(&self, kind: &Kind, field: &str) -> &str {
        let fields = self.fields.get_or_init(|| {
            let object = object::decode(&self.object);
            let text = |(name, field): (String, Field)| (name, field.text(&object));
            selectable_fields(kind).map(text).collect()
        });
        fields.get(field).map_or("", String::as_str)
    }
}

/// Where the value of a selectable field is.
enum Field {
    /// A field that a built-in kind declares, with the zero value of its type.
    Declared(&'static SelectableField),
    /// A path; an absent value is empty.
    Path(String),
}

impl Field {
    /// The value as selectors compare it.
    // pkg/registry/*/strategy.go, ToSelectableFields; customresource/strategy.go, GetAttrs
    fn text(&self, object: &Value) -> String {
        match self {
            Field::Path(path) => text_at(object, path),
            Field::Declared(field) => {
                let mut values = field.paths.iter().map(|path| text_at(object, path));
                values.find(|value| !value.is_empty()).unwrap_or_else(|| field.zero.to_owned())
            }
        }
    }
}

/// The fields of a kind that selectors may name, and where they are.
fn selectable_fields(kind: &Kind) -> impl Iterator<Item = (String, Field)> {
    let namespace = kind.selects_namespace().then_some("metadata.namespace");
    let metadata = ["metadata.name"].into_iter().chain(namespace).map(str::to_owned);
    let declared = kind.spec.fields.iter().map(|field| (field.name.to_owned(), Field::Declared(field)));
    let custom = kind.custom.iter().flat_map(|custom| &custom.selectable_fields);
    let custom = custom.map(|path| path.trim_start_matches('.').to_owned());
    let paths = metadata.chain(custom).map(|path| (path.clone(), Field::Path(path)));
    declared.chain(paths)
}

fn check_field(kind: &Kind, field: &str) -> Result<()> {
    if selectable_fields(kind).any(|(name, _)| name == field) {
        return Ok(());
    }
    let own_words = kind.custom.is_some() || !kind.spec.fields.is_empty();
    Err(Status::bad_request(match own_words {
        true => format!("field label not supported: {field}"),
        false => format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
    }))
}

/// The value at a dotted path as a text; empty if there is none.
fn text_at(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, name| &value[name]) {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => String::new(),
    }
}
