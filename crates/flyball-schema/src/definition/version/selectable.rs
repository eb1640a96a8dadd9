//! Fields of a custom resource by which it may be selected.
// ValidateCustomResourceSelectableFields, and schema/cel/validation.go, ValidFieldPath

use crate::definition::text;
use crate::violation::Violation;
use serde_json::Value;
use std::collections::HashSet;

const MOST: u64 = 8;

pub(super) fn check(fields: &[Value], schema: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let (json_path, path) = (text(field, "jsonPath"), format!("{path}[{index}].jsonPath"));
        if json_path.is_empty() {
            found.push(Violation::required(path, ""));
            continue;
        }
        let target = match find(json_path, schema) {
            Ok(target) => target,
            Err(error) => {
                found.push(Violation::invalid(path, json_path, &format!("is an invalid path: {error}")));
                continue;
            }
        };
        if json_path == ".metadata" || json_path.starts_with(".metadata.") {
            found.push(Violation::invalid(&path, json_path, "must not point to fields in metadata"));
        }
        if !matches!(text(target, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                          formats are allowed.";
            found.push(Violation::invalid(&path, json_path, detail));
        }
        if !seen.insert(json_path) {
            found.push(Violation::duplicate(path, json_path));
        }
    }
    let count = seen.len() as u64;
    if count > MOST {
        found.push(Violation::too_many(path, count, MOST));
    }
    found
}

/// The schema that a path like `.spec.color` leads to.
fn find<'a>(json_path: &str, schema: &'a Value) -> Result<&'a Value, String> {
    let mut schema = schema;
    let mut rest = json_path;
    while !rest.is_empty() {
        let Some(after) = rest.strip_prefix('.') else {
            if rest.starts_with('[') {
                return Err("array notation is not allowed".to_owned());
            }
            let token = rest.split(['.', '[', ']']).next().filter(|token| !token.is_empty()).unwrap_or(&rest[..1]);
            return Err(format!("expected [ or . but got: {token}"));
        };
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let length = after.find(['.', '[', ']']).unwrap_or(after.len()).max(1);
        let (name, after) = after.split_at(length);
        let missing = "does not refer to a valid field";
        schema = match (schema["properties"].as_object(), &schema["additionalProperties"]) {
            (Some(properties), _) => properties.get(name).ok_or(missing)?,
            (None, additional @ Value::Object(_)) => additional,
            _ => return Err(missing.to_owned()),
        };
        rest = after;
    }
    Ok(schema)
}
