//! The columns of a custom resource: `additionalPrinterColumns` of its definition.

use super::age;
use crate::registry;
use flyball_schema::jsonpath::JsonPath;
use jiff::Timestamp;
use serde_json::{Number, Value, json};

/// One column, ready to be filled.
pub struct Column {
    path: Option<JsonPath>,
    kind: String,
}

/// The column of a custom resource that has none.
pub fn default_column() -> registry::Column {
    registry::Column {
        name: "Age".into(),
        kind: "date".into(),
        format: String::new(),
        description: super::AGE.description.into(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".into(),
    }
}

/// What the client is told of a column.
pub fn definition(column: &registry::Column) -> Value {
    let registry::Column { name, kind, format, priority, json_path, .. } = column;
    let description = match column.description.as_str() {
        "" => format!("Custom resource definition column (in JSONPath format): {json_path}"),
        description => description.to_owned(),
    };
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

impl Column {
    /// Reads the column's path; a path that is none leaves the column empty.
    pub fn new(column: &registry::Column) -> Column {
        Column {
            path: JsonPath::parse(&column.json_path).ok(),
            kind: column.kind.clone(),
        }
    }

    /// What stands in the column: the first thing that the path leads to, if it is of the column's type.
    pub fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok());
        let Some(value) = found.as_ref().and_then(|found| found.first()) else {
            return Value::Null;
        };
        match (&*self.kind, value.as_ref()) {
            ("string", value) => json!(text(value)),
            ("integer", Value::Number(number)) => json!(integer(number)),
            ("number", Value::Number(number)) => json!(number),
            ("boolean", Value::Bool(flag)) => json!(flag),
            ("date", time @ Value::String(_)) => json!(age::since(Some(time), now)),
            _ => Value::Null,
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".into(),
        other => other.to_string(),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a fraction is cut off, as Go does")]
fn integer(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64().map(|float| float as i64))
}
