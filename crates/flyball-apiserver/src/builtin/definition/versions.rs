//! What is wrong with a definition's versions.

use flyball_schema::crd;
use flyball_schema::names::dns1035_label;
use flyball_schema::violation::Violation;
use serde_json::{Value, json};
use std::collections::HashSet;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 9] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
    "name",
];

fn versions(spec: &Value) -> &[Value] {
    spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Every version needs a name of its own and a schema, and one of them is stored.
pub(super) fn validate(spec: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, version) in versions(spec).iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            violations.push(Violation::required(path, ""));
        }
    }
    for (index, version) in versions(spec).iter().enumerate() {
        let name = text(&version["name"]);
        let wrong = dns1035_label(name);
        if !wrong.is_empty() {
            let path = format!("spec.versions[{index}].name");
            violations.push(Violation::invalid(path, name, &wrong.join(",")));
        }
        violations.extend(validate_deprecation(version, index));
    }
    let names: HashSet<&str> = versions(spec).iter().map(|version| text(&version["name"])).collect();
    if names.len() < versions(spec).len() {
        violations.push(Violation::invalid("spec.versions", shown(spec), "must contain unique version names"));
    }
    let stored = versions(spec).iter().filter(|version| version["storage"] == true).count();
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        violations.push(Violation::invalid("spec.versions", shown(spec), why));
    }
    violations
}

/// The versions as Go shows them in its own spelling, with what is the same in all of them lifted out.
fn shown(spec: &Value) -> Value {
    let lifted = |field: &str| {
        let all = versions(spec);
        all.windows(2).all(|pair| pair[0][field] == pair[1][field])
    };
    let keep = |version: &Value, field: &str| {
        if lifted(field) {
            Value::Null
        } else {
            version[field].clone()
        }
    };
    let show = |version: &Value| {
        json!({
            "Name": version["name"], "Served": version["served"] == true, "Storage": version["storage"] == true,
            "Deprecated": version["deprecated"] == true, "DeprecationWarning": version["deprecationWarning"],
            "Schema": keep(version, "schema"), "Subresources": keep(version, "subresources"),
            "AdditionalPrinterColumns": keep(version, "additionalPrinterColumns"),
            "SelectableFields": keep(version, "selectableFields"),
        })
    };
    versions(spec).iter().map(show).collect()
}

fn validate_deprecation(version: &Value, index: usize) -> Option<Violation> {
    let warning = version["deprecationWarning"].as_str()?;
    let why = match (version["deprecated"] == true, warning.len()) {
        (false, _) => "can only be set for deprecated versions",
        (true, 0) => "must not be an empty string",
        (true, 257..) => "must be <= 256 characters long",
        _ => return None,
    };
    Some(Violation::invalid(format!("spec.versions[{index}].deprecationWarning"), warning, why))
}

/// Checks schemas, subresources and columns. What all versions share, a real server has lifted out of them.
pub(super) fn validate_schemas(spec: &Value) -> Vec<Violation> {
    let all = versions(spec);
    let shared = |field: &str| all.windows(2).all(|pair| pair[0][field] == pair[1][field]);
    let mut violations = Vec::new();
    let any_status = all.iter().any(|version| version["subresources"]["status"].is_object());
    let parts = [
        ("schema", "spec.validation"),
        ("subresources", "spec.subresources"),
        ("additionalPrinterColumns", "spec.additionalPrinterColumns"),
    ];
    for (field, lifted) in parts {
        for (index, version) in all.iter().enumerate() {
            let has_status = version["subresources"]["status"].is_object();
            let (path, status) = match shared(field) {
                true => (lifted.to_owned(), any_status),
                false => (format!("spec.versions[{index}].{field}"), has_status),
            };
            violations.extend(match field {
                "schema" => validate_schema(&version["schema"], &path, status),
                "subresources" => validate_scale(&version["subresources"]["scale"], &path),
                _ => validate_columns(&version["additionalPrinterColumns"], &path),
            });
            if shared(field) {
                break;
            }
        }
    }
    violations
}

fn validate_schema(schema: &Value, path: &str, has_status: bool) -> Vec<Violation> {
    let schema = &schema["openAPIV3Schema"];
    if !schema.is_object() {
        return Vec::new();
    }
    let status = if has_status {
        crd::Status::Subresource
    } else {
        crd::Status::Plain
    };
    crd::read(schema, &format!("{path}.openAPIV3Schema"), status).err().unwrap_or_default()
}

fn validate_scale(scale: &Value, path: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !scale.is_object() {
        return violations;
    }
    for (field, below, required) in [
        ("specReplicasPath", &[".spec."][..], true),
        ("statusReplicasPath", &[".status."][..], true),
        ("labelSelectorPath", &[".spec.", ".status."][..], false),
    ] {
        let path = format!("{path}.scale.{field}");
        let given = text(&scale[field]);
        if given.is_empty() {
            violations.extend(required.then(|| Violation::required(path, "")));
        } else if !given.starts_with('.') {
            violations.push(Violation::invalid(path, given, "must be a simple json path starting with ."));
        } else if !below.iter().any(|prefix| given.starts_with(prefix)) {
            let why = match below {
                [".spec."] => "should be a json path under .spec",
                [".status."] => "should be a json path under .status",
                _ => "should be a json path under either .spec or .status",
            };
            violations.push(Violation::invalid(path, given, why));
        }
    }
    violations
}

fn validate_columns(columns: &Value, path: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = |field: &str| format!("{path}[{index}].{field}");
        if text(&column["name"]).is_empty() {
            violations.push(Violation::required(path("name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(&column["type"]) {
            "" => violations.push(Violation::required(path("type"), &types)),
            kind if COLUMN_TYPES.contains(&kind) => {}
            kind => violations.push(Violation::invalid(path("type"), kind, &types)),
        }
        let format = text(&column["format"]);
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            violations.push(Violation::invalid(path("format"), format, &why));
        }
        match text(&column["jsonPath"]) {
            "" => violations.push(Violation::required(path("JSONPath"), "")),
            given if !given.starts_with('.') => {
                let why = "must be a simple json path starting with .";
                violations.push(Violation::invalid(path("JSONPath"), given, why));
            }
            _ => {}
        }
    }
    violations
}

/// Versions are converted by rewriting their name, and in no other way.
pub(super) fn validate_conversion(spec: &Value) -> Vec<Violation> {
    match text(&spec["conversion"]["strategy"]) {
        "None" => Vec::new(),
        "" => vec![Violation::required("spec.conversion.strategy", "")],
        "Webhook" => {
            let why = "conversion webhooks are not supported by this server";
            vec![Violation::forbidden("spec.conversion.strategy", why)]
        }
        given => vec![Violation::not_supported(
            "spec.conversion.strategy",
            given,
            &["None", "Webhook"],
        )],
    }
}

// ValidateCustomResourceDefinitionStoredVersions
pub(super) fn validate_stored(definition: &Value) -> Vec<Violation> {
    const PATH: &str = "status.storedVersions";
    let stored = &definition["status"]["storedVersions"];
    let names: Vec<&str> = stored.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        return vec![Violation::invalid(
            PATH,
            stored.clone(),
            "must have at least one stored version",
        )];
    }
    let mut violations = Vec::new();
    let versions = versions(&definition["spec"]);
    for version in versions.iter().filter(|version| version["storage"] == true) {
        let name = text(&version["name"]);
        if !names.contains(&name) {
            let why = format!("must have the storage version {name}");
            violations.push(Violation::invalid(PATH, stored.clone(), &why));
        }
    }
    for (index, name) in names.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == **name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            violations.push(Violation::invalid(format!("{PATH}[{index}]"), *name, &why));
        }
    }
    violations
}
