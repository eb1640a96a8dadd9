//! Which objects a list, a watch or a deletecollection means.

use crate::registry::{Kind, object};
use crate::request::context::ResourceRequest;
use crate::request::options::ListOptions;
use crate::status::{Result, Status};
use flyball_schema::selector::{FieldSelector, LabelSelector};
use serde_json::Value;
use std::collections::HashMap;
use std::str::FromStr;

/// Decides whether an object is meant.
#[derive(Clone, Default)]
pub(crate) struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
    paths: HashMap<String, String>,
    name: Option<String>,
}

impl Filter {
    /// Reads the selectors of a request.
    pub fn read(request: &ResourceRequest, options: &ListOptions) -> Result<Filter> {
        let labels = options.label_selector.as_deref().unwrap_or_default();
        let labels = LabelSelector::from_str(labels).map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = options.field_selector.as_deref().unwrap_or_default();
        let fields = FieldSelector::from_str(fields).map_err(|error| Status::bad_request(error.to_string()))?;
        let mut paths = HashMap::new();
        for requirement in &fields.requirements {
            paths.insert(requirement.field.clone(), path_of(&request.kind, &requirement.field)?);
        }
        let path_name = request.target.name.clone();
        let name = path_name.or_else(|| fields.exact("metadata.name").map(str::to_owned));
        Ok(Filter { labels, fields, paths, name })
    }

    /// Whether every object is meant.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty() && self.name.is_none()
    }

    /// Whether an encoded object is meant.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        if self.is_empty() {
            return true;
        }
        let metadata = object::peek(bytes).metadata;
        if self.name.as_deref().is_some_and(|name| name != metadata.name) {
            return false;
        }
        self.labels.matches(metadata.labels.as_ref()) && (self.fields.is_empty() || self.matches_fields(bytes))
    }

    fn matches_fields(&self, bytes: &[u8]) -> bool {
        let object = object::decode(bytes);
        let values: HashMap<&str, String> =
            self.paths.iter().map(|(field, path)| (field.as_str(), text_at(&object, path))).collect();
        self.fields.matches(|field| values.get(field).map_or("", String::as_str))
    }
}

/// Where a field that a selector names is in the object.
fn path_of(kind: &Kind, field: &str) -> Result<String> {
    if field == "metadata.name" || (field == "metadata.namespace" && kind.selects_namespace()) {
        return Ok(field.to_owned());
    }
    if let Some((_, path)) = kind.strategy.fields.iter().find(|(name, _)| *name == field) {
        return Ok((*path).to_owned());
    }
    let selectable = kind.custom.iter().flat_map(|custom| &custom.selectable_fields);
    if let Some(path) = selectable.map(|path| path.trim_start_matches('.')).find(|path| *path == field) {
        return Ok(path.to_owned());
    }
    let own_words = kind.custom.is_some() || !kind.strategy.fields.is_empty();
    Err(Status::bad_request(match own_words {
        true => format!("field label not supported: {field}"),
        false => format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
    }))
}

/// The value at a dotted path as selectors compare it; empty if there is none.
fn text_at(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, name| &value[name]) {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => String::new(),
    }
}
