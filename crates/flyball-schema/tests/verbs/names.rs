//! Names, labels and metadata.

use crate::{check_all, lines, same, text};
use flyball_schema::names::{self, NameRule};
use flyball_schema::{metadata, violation::Violation};
use serde_json::Value;

#[test]
fn names_are_refused_with_kubernetes_words() {
    check_all("names.yaml", |case| same(&wrong_with(case).into(), &expected(case)));
}

fn wrong_with(case: &Value) -> Vec<String> {
    let value = text(case, "value");
    match text(case, "rule") {
        "label" => names::dns1123_label(value),
        "subdomain" => names::dns1123_subdomain(value),
        "label1035" => names::dns1035_label(value),
        "qualified" => names::qualified_name(value),
        "value" => names::label_value(value),
        "segment" => names::path_segment(value),
        "config" => names::config_key(value),
        "prefix" => NameRule::Subdomain.prefix(value),
        "segment-prefix" => NameRule::PathSegment.prefix(value),
        other => vec![format!("the case has an unknown rule {other}")],
    }
}

#[test]
fn metadata_is_refused_with_kubernetes_words() {
    check_all("metadata.yaml", |case| same(&lines(&violations(case)), &expected(case)));
}

fn violations(case: &Value) -> Vec<Violation> {
    match case.get("old") {
        Some(old) => metadata::validate_update(&case["metadata"], old, "metadata"),
        None => {
            let namespaced = case["namespaced"].as_bool().unwrap_or_default();
            metadata::validate(&case["metadata"], namespaced, NameRule::Subdomain, "metadata")
        }
    }
}

fn expected(case: &Value) -> Value {
    case.get("wrong").cloned().unwrap_or_else(|| Value::Array(Vec::new()))
}

#[test]
fn the_long_name_of_a_manager_is_not_repeated_for_each_of_its_characters() {
    let found = metadata::validate_field_manager(&"\u{7f}".repeat(5_000), "manager");
    let told: usize = found.iter().map(|violation| violation.to_string().len()).sum();
    assert!(told < 8 << 20, "{told} bytes");
    let short = metadata::validate_field_manager(&"\u{7f}".repeat(200), "manager");
    assert_eq!(short.len(), 201);
}
