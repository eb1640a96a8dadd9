//! Label and field selectors.

use crate::{check_all, same, text};
use flyball_schema::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

#[test]
fn label_selectors_parse_and_match() {
    check_all("label_selectors.yaml", |case| match text(case, "selector").parse::<LabelSelector>() {
        Err(error) => same(&json!({"error": error.to_string()}), &json!({"error": case["error"]})),
        Ok(selector) => {
            let matches = case.get("labels").map(|labels| selector.matches(labels.as_object()));
            same(
                &printed(&selector.to_string(), matches),
                &printed(text(case, "prints"), case["matches"].as_bool()),
            )
        }
    });
}

#[test]
fn field_selectors_parse_and_match() {
    check_all("field_selectors.yaml", |case| match text(case, "selector").parse::<FieldSelector>() {
        Err(error) => same(&json!({"error": error.to_string()}), &json!({"error": case["error"]})),
        Ok(selector) => {
            let value_of = |field: &str| case["fields"][field].as_str().unwrap_or_default();
            let matches = case.get("fields").map(|_| selector.matches(value_of));
            same(
                &printed(&selector.to_string(), matches),
                &printed(text(case, "prints"), case["matches"].as_bool()),
            )
        }
    });
}

fn printed(text: &str, matches: Option<bool>) -> Value {
    json!({"prints": text, "matches": matches})
}
