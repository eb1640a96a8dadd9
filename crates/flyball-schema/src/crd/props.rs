//! `JSONSchemaProps`: the keywords of one schema in a CustomResourceDefinition.

use serde_json::{Map, Value};

/// One schema; keywords that are missing or of the wrong type are empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Props<'a> {
    fields: Option<&'a Map<String, Value>>,
}

/// What `additionalProperties` says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Additional<'a> {
    Allowed(bool),
    Schema(Props<'a>),
}

impl<'a> Props<'a> {
    pub(super) fn of(schema: &'a Value) -> Props<'a> {
        Props { fields: schema.as_object() }
    }

    pub(super) fn get(self, keyword: &str) -> Option<&'a Value> {
        self.fields?.get(keyword).filter(|value| !value.is_null())
    }

    /// The keywords that say anything.
    pub(super) fn keywords(self) -> Vec<&'a str> {
        let says = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(_) | Value::Bool(true) | Value::Number(_) => true,
        };
        let fields = self.fields.into_iter().flatten();
        fields.filter(|(_, value)| says(value)).map(|(name, _)| name.as_str()).collect()
    }

    pub(super) fn to_value(self) -> Value {
        self.fields.cloned().map(Value::Object).unwrap_or_default()
    }

    pub(super) fn text(self, keyword: &str) -> &'a str {
        self.get(keyword).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn count(self, keyword: &str) -> Option<u64> {
        let value = self.get(keyword)?;
        // A negative bound never binds from below, and always does from above.
        value.as_u64().or_else(|| value.as_i64().map(|_| 0))
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        self.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn texts(self, keyword: &str) -> Vec<&'a str> {
        self.list(keyword).iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn schemas(self, keyword: &str) -> impl Iterator<Item = Props<'a>> {
        self.list(keyword).iter().map(Props::of)
    }

    pub(super) fn schema(self, keyword: &str) -> Option<Props<'a>> {
        self.get(keyword).filter(|value| value.is_object()).map(Props::of)
    }

    pub(super) fn map(self, keyword: &str) -> Option<&'a Map<String, Value>> {
        self.get(keyword)?.as_object()
    }

    /// The properties, sorted by name; Go's own order is random.
    pub(super) fn properties(self) -> Vec<(&'a str, Props<'a>)> {
        let properties = self.map("properties").into_iter().flatten();
        let mut sorted: Vec<_> = properties.map(|(name, schema)| (name.as_str(), Props::of(schema))).collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        sorted
    }

    pub(super) fn property(self, name: &str) -> Option<Props<'a>> {
        self.map("properties")?.get(name).map(Props::of)
    }

    pub(super) fn items(self) -> Option<Props<'a>> {
        self.schema("items")
    }

    pub(super) fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            schema => Some(Additional::Schema(Props::of(schema))),
        }
    }

    pub(super) fn int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    pub(super) fn preserves_unknown(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(super) fn embeds_resource(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }
}
