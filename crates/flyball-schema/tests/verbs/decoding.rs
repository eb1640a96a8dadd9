//! JSON and YAML bodies.

use crate::{check_all, same, text};
use flyball_schema::decode::{DecodeError, Decoded, Document, MAX_DEPTH};
use flyball_schema::kinds;
use serde_json::{Value, json};

#[test]
fn bodies_decode_or_are_refused_with_gos_words() {
    check_all("decode.yaml", |case| match decode(case) {
        Ok(Decoded { value, complaints }) => {
            let expected = json!({"value": case["value"], "complaints": or_empty(&case["complaints"])});
            same(&json!({"value": value, "complaints": complaints}), &expected)
        }
        Err(error) => same(&json!({"error": error.to_string()}), &json!({"error": case["error"]})),
    });
}

fn decode(case: &Value) -> Result<Decoded, DecodeError> {
    let document = match case.get("yaml") {
        Some(_) => Document::yaml(text(case, "yaml").as_bytes())?,
        None => Document::json(text(case, "json").as_bytes())?,
    };
    document.type_meta()?;
    match case.get("type") {
        None => document.untyped(),
        Some(_) => document.typed(kinds::builtin().schema(text(case, "type")).expect("a built-in type")),
    }
}

fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!([]) } else { value.clone() }
}

#[test]
fn a_body_says_what_it_is() {
    let document = Document::json(br#"{"kind":"Pod","spec":{},"apiVersion":"v1"}"#).expect("JSON");
    let meta = document.type_meta().expect("an object");
    assert_eq!((meta.api_version.as_str(), meta.kind.as_str()), ("v1", "Pod"));
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Document::json(nested(MAX_DEPTH).as_bytes()).and_then(Document::untyped).is_ok());
    let error = Document::json(nested(MAX_DEPTH + 1).as_bytes()).expect_err("one too deep");
    assert_eq!(
        error.to_string(),
        "couldn't get version/kind; json parse error: invalid character '[' exceeded max depth"
    );
    assert!(Document::json("[".repeat(1_000_000).as_bytes()).is_err());
    assert!(Document::yaml("[".repeat(1_000_000).as_bytes()).is_err());
    assert!(Document::yaml("- ".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn aliases_do_not_multiply_without_end() {
    let mut yaml = "a0: &a0 [x]\n".to_owned();
    for level in 1..40 {
        let alias = format!("*a{}", level - 1);
        yaml += &format!("a{level}: &a{level} [{alias}, {alias}, {alias}]\n");
    }
    let error = Document::yaml(yaml.as_bytes()).expect_err("3^40 nodes");
    assert_eq!(error.to_string(), "yaml: document contains excessive aliasing");
}
