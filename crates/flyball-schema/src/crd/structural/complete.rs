//! What alternatives restrict has to be declared outside of them.
// apiextensions-apiserver/pkg/apiserver/schema/complete.go

use crate::crd::props::Props;
use crate::violation::Violation;

/// Everything that alternatives of the root mention and that is not declared.
pub(super) fn check(props: Props<'_>, path: &str) -> Vec<Violation> {
    check_values(props, Some(props), path, path)
}

fn check_values(values: Props<'_>, declared: Option<Props<'_>>, path: &str, values_path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Some(not) = values.schema("not") {
        found.extend(check_nested(not, declared, path, &format!("{values_path}.not")));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in values.schemas(keyword).enumerate() {
            found.extend(check_nested(nested, declared, path, &format!("{values_path}.{keyword}[{index}]")));
        }
    }
    found
}

fn check_nested(nested: Props<'_>, declared: Option<Props<'_>>, path: &str, nested_path: &str) -> Vec<Violation> {
    let Some(schema) = declared else {
        return vec![Violation::required(
            path,
            &format!("because it is defined in {nested_path}"),
        )];
    };
    let mut found = check_values(nested, declared, path, nested_path);
    if let Some(items) = nested.items() {
        let (path, nested_path) = (format!("{path}.items"), format!("{nested_path}.items"));
        found.extend(check_nested(items, schema.items(), &path, &nested_path));
    }
    for (name, property) in nested.properties() {
        let path = format!("{path}.properties[{name}]");
        let nested_path = format!("{nested_path}.properties[{name}]");
        found.extend(check_nested(property, schema.property(name), &path, &nested_path));
    }
    found
}
