//! The columns of a custom resource: `additionalPrinterColumns` of its definition.

use super::age;
use super::column::AGE;
use crate::jsonpath::JsonPath;
use jiff::Timestamp;
use serde_json::{Number, Value, json};

/// One of a custom resource's `additionalPrinterColumns`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the field of its name")]
pub struct CustomColumn {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub json_path: String,
}

/// A column that is ready to be filled.
pub(super) struct Filler {
    path: Option<JsonPath>,
    kind: String,
}

impl CustomColumn {
    /// Reads one of `additionalPrinterColumns`.
    pub fn read(column: &Value) -> CustomColumn {
        let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        CustomColumn {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column["priority"].as_i64().unwrap_or(0),
            json_path: text("jsonPath"),
        }
    }

    /// The column of a custom resource that has none.
    pub(super) fn age() -> CustomColumn {
        CustomColumn {
            name: AGE.name.into(),
            kind: "date".into(),
            format: String::new(),
            description: AGE.description.into(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".into(),
        }
    }

    /// What the client is told of the column.
    pub(super) fn definition(&self) -> Value {
        let CustomColumn { name, kind, format, priority, json_path, .. } = self;
        let description = match self.description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {json_path}"),
            description => description.to_owned(),
        };
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
    }
}

impl Filler {
    /// Reads the column's path; a path that is none leaves the column empty.
    pub fn new(column: &CustomColumn) -> Filler {
        Filler {
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
