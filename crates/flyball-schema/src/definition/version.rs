//! One version of a custom resource. What all versions share, real servers look at once, under `spec` itself.

mod selectable;

use super::{items, text};
use crate::crd::{self, Status};
use crate::go_text;
use crate::violation::Violation;
use serde_json::Value;

/// What all versions have in common; nothing where they differ.
// apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go
#[derive(Clone, Copy, Default)]
pub(super) struct Hoisted<'a> {
    pub(super) schema: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a Value>,
    pub(super) selectable: Option<&'a Value>,
}

/// The parts of a version, or of all of them.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    schema: Option<&'a Value>,
    subresources: Option<&'a Value>,
    columns: Option<&'a Value>,
    selectable: Option<&'a Value>,
    status: Status,
    /// Whether the schema is the one that is stored.
    is_unchanged: bool,
    /// What the schema is called here.
    schema_name: &'static str,
}

impl<'a> Hoisted<'a> {
    pub(super) fn of(versions: &'a [Value]) -> Hoisted<'a> {
        let common = |field: &str| {
            let (first, rest) = versions.split_first()?;
            rest.iter().all(|version| version[field] == first[field]).then_some(&first[field])
        };
        Hoisted {
            schema: common("schema"),
            subresources: common("subresources"),
            columns: common("additionalPrinterColumns"),
            selectable: common("selectableFields"),
        }
    }

    /// What is looked at under `spec`.
    pub(super) fn fields(&self, spec: &Value, old: Option<&Value>) -> Fields<'a> {
        let versions = items(spec, "versions");
        let any = versions.iter().any(has_status);
        Fields {
            schema: self.schema,
            subresources: self.subresources,
            columns: self.columns,
            selectable: self.selectable,
            status: if any { Status::Subresource } else { Status::Plain },
            is_unchanged: versions.first().is_some_and(|version| has_same_schema(version, old)),
            schema_name: "validation",
        }
    }
}

fn has_status(version: &Value) -> bool {
    !version["subresources"]["status"].is_null()
}

/// Whether a stored definition has a version of the same name with the same schema.
// findVersionsWithUnchangedSchemas
fn has_same_schema(version: &Value, old: Option<&Value>) -> bool {
    let mut versions = old.map(|spec| items(spec, "versions")).unwrap_or_default().iter();
    versions.any(|old| old["name"] == version["name"] && old["schema"] == version["schema"])
}

/// What is wrong with a version beyond what all versions share.
pub(super) fn check(version: &Value, hoisted: &Hoisted<'_>, old: Option<&Value>, path: &str) -> Vec<Violation> {
    let mut found = deprecation(version, path);
    let fields = Fields {
        schema: Some(&version["schema"]).filter(|_| hoisted.schema.is_none()),
        subresources: Some(&version["subresources"]).filter(|_| hoisted.subresources.is_none()),
        columns: Some(&version["additionalPrinterColumns"]).filter(|_| hoisted.columns.is_none()),
        selectable: Some(&version["selectableFields"]).filter(|_| hoisted.selectable.is_none()),
        status: if has_status(version) {
            Status::Subresource
        } else {
            Status::Plain
        },
        is_unchanged: has_same_schema(version, old),
        schema_name: "schema",
    };
    found.extend(check_fields(fields, path));
    found
}

pub(super) fn check_fields(fields: Fields<'_>, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let schema = fields.schema.map(|schema| &schema["openAPIV3Schema"]).filter(|schema| !schema.is_null());
    if let Some(schema) = schema {
        let path = format!("{path}.{}.openAPIV3Schema", fields.schema_name);
        let read = if fields.is_unchanged {
            crd::read_unchanged
        } else {
            crd::read
        };
        found.extend(read(schema, &path, fields.status).err().unwrap_or_default());
    }
    if let Some(subresources) = fields.subresources {
        found.extend(scale(&subresources["scale"], &format!("{path}.subresources.scale")));
    }
    for (index, column) in fields.columns.and_then(Value::as_array).into_iter().flatten().enumerate() {
        found.extend(check_column(column, &format!("{path}.additionalPrinterColumns[{index}]")));
    }
    let selectable = fields.selectable.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(schema) = schema {
        found.extend(selectable::check(selectable, schema, &format!("{path}.selectableFields")));
    }
    found
}

fn deprecation(version: &Value, path: &str) -> Vec<Violation> {
    let Some(warning) = version["deprecationWarning"].as_str() else {
        return Vec::new();
    };
    let path = format!("{path}.deprecationWarning");
    let wrong = |detail: &str| Violation::invalid(&path, warning, detail);
    if version["deprecated"] != true {
        return vec![wrong("can only be set for deprecated versions")];
    }
    let mut found = Vec::new();
    if warning.len() > 256 {
        found.push(wrong("must be <= 256 characters long"));
    }
    if warning.is_empty() {
        found.push(wrong("must not be an empty string"));
    }
    let unprintable = warning.char_indices().find(|(_, character)| !go_text::is_print(*character));
    if let Some((index, _)) = unprintable {
        let rule = "must only contain printable UTF-8 characters; non-printable character found at index";
        found.push(wrong(&format!("{rule} {index}")));
    }
    found
}

fn scale(scale: &Value, path: &str) -> Vec<Violation> {
    if scale.is_null() {
        return Vec::new();
    }
    let mut found = Vec::new();
    found.extend(scale_path(
        scale,
        "specReplicasPath",
        &[".spec."],
        "should be a json path under .spec",
        path,
    ));
    found.extend(scale_path(
        scale,
        "statusReplicasPath",
        &[".status."],
        "should be a json path under .status",
        path,
    ));
    if !text(scale, "labelSelectorPath").is_empty() {
        let detail = "should be a json path under either .spec or .status";
        found.extend(scale_path(scale, "labelSelectorPath", &[".spec.", ".status."], detail, path));
    }
    found
}

fn scale_path(scale: &Value, field: &str, under: &[&str], detail: &str, path: &str) -> Option<Violation> {
    let (value, path) = (text(scale, field), format!("{path}.{field}"));
    if value.is_empty() {
        return Some(Violation::required(path, ""));
    }
    if !value.starts_with('.') {
        return Some(Violation::invalid(path, value, "must be a simple json path starting with ."));
    }
    let fits = under.iter().any(|prefix| value.starts_with(prefix));
    (!fits).then(|| Violation::invalid(path, value, detail))
}

fn check_column(column: &Value, path: &str) -> Vec<Violation> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    let mut found = Vec::new();
    if text(column, "name").is_empty() {
        found.push(Violation::required(format!("{path}.name"), ""));
    }
    let (kind, detail) = (text(column, "type"), format!("must be one of {}", TYPES.join(",")));
    if kind.is_empty() {
        found.push(Violation::required(format!("{path}.type"), &detail));
    } else if !TYPES.contains(&kind) {
        found.push(Violation::invalid(format!("{path}.type"), kind, &detail));
    }
    let format = text(column, "format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        found.push(Violation::invalid(format!("{path}.format"), format, &detail));
    }
    let json_path = text(column, "jsonPath");
    if json_path.is_empty() {
        found.push(Violation::required(format!("{path}.JSONPath"), ""));
    } else if !json_path.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        found.push(Violation::invalid(format!("{path}.JSONPath"), json_path, detail));
    }
    found
}
