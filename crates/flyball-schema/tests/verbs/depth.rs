//! Whatever is decoded, no verb runs out of stack. Tests have two mebibytes of it, as tokio's threads do.

use flyball_schema::crd::{self, Status, Structural};
use flyball_schema::decode::{Document, MAX_DEPTH};
use flyball_schema::{default, go_text, json_patch, merge_patch, metadata, names::NameRule, validate};
use serde_json::{Value, json};

#[test]
fn the_deepest_value_goes_through_every_verb() {
    let text = format!("{}1{}", r#"{"a":"#.repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
    let value = Document::json(text.as_bytes())
        .and_then(Document::untyped)
        .expect("as deep as may be")
        .value;
    for structural in [deepest_schema(), Structural::anything()] {
        let mut object = json!({"spec": value["a"].clone(), "metadata": {"name": "a"}});
        structural.coerce(&mut object).expect("metadata");
        default::default(structural.node(), &mut object);
        validate::validate(structural.node(), &object);
        validate::validate_update(structural.node(), &object, &value);
    }
    let mut merged = value.clone();
    merge_patch::apply(&mut merged, &value);
    assert_eq!(go_text::json(&merged), text);
    assert!(json_patch::apply(&mut merged, text.as_bytes()).is_err());
    metadata::validate(&value, true, NameRule::Label, "metadata");
    assert!(Document::yaml(text.as_bytes()).is_ok(), "YAML goes as deep");
}

/// Objects in objects in alternatives, as deep as a definition can be sent.
fn deepest_schema() -> Structural {
    let mut schema = json!({"type": "string", "default": "x", "anyOf": [{"minLength": 1}, {"maxLength": 2}]});
    for _ in 0..(MAX_DEPTH - 20) / 2 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let root = json!({"type": "object", "properties": {"spec": schema}});
    crd::read(&root, "schema", Status::Plain).expect("a structural schema")
}

#[test]
fn deep_alternatives_are_refused_or_read() {
    let mut nested = json!({"type": "string"});
    for _ in 0..(MAX_DEPTH - 20) / 2 {
        nested = json!({"anyOf": [nested]});
    }
    let root = json!({"type": "object", "properties": {"spec": {"type": "object", "not": nested}}});
    assert!(crd::read(&root, "schema", Status::Subresource).is_err());
    let odd: [Value; 5] = [
        json!(null),
        json!([]),
        json!("x"),
        json!({"properties": 5, "type": []}),
        json!({"items": [1]}),
    ];
    for schema in odd {
        assert!(crd::read(&schema, "schema", Status::Plain).is_err(), "{schema}");
    }
}
