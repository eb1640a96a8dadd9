//! Random schemas with every keyword there is, and random objects that may fit them or not.

use flyball_schema::crd::{self, Status, Structural};
use serde_json::{Map, Value, json};

/// A structural schema, as it is written and as it was read. What contradicts itself is tried again.
pub fn schema(random: &mut Random, seed: u64) -> (Value, Structural) {
    let mut wrong = Vec::new();
    for _ in 0..50 {
        let plain = json!({"type": "object", "properties": properties(random)});
        let schema = restricted(random, plain, 0);
        match crd::read(&schema, "schema", Status::Plain) {
            Ok(structural) => return (schema, structural),
            Err(violations) => wrong = violations,
        }
    }
    panic!("seed {seed}: no schema of fifty is structural: {wrong:?}");
}

fn properties(random: &mut Random) -> Value {
    let mut properties = Map::new();
    for name in ["a", "b", "c"] {
        properties.insert(name.into(), any_type(random, 3));
    }
    if random.below(4) == 0 {
        let name = json!({"type": "string", "maxLength": random.below(9), "pattern": "^[a-z]*$"});
        properties.insert("metadata".into(), json!({"type": "object", "properties": {"name": name}}));
    }
    properties.into()
}

/// A type, in most cases with something that is asked of its values.
fn any_type(random: &mut Random, depth: usize) -> Value {
    let plain = unrestricted(random, depth);
    match random.below(3) {
        0 => plain,
        _ => restricted(random, plain, depth),
    }
}

fn unrestricted(random: &mut Random, depth: usize) -> Value {
    let scalars = [
        json!({"type": "string"}),
        json!({"type": "string", "default": "x"}),
        json!({"type": "integer"}),
        json!({"type": "integer", "default": 7}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "string", "nullable": true, "default": "y"}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true}),
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
            "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}),
    ];
    match random.below(if depth == 0 { 1 } else { 7 }) {
        0 | 1 => scalars[random.below(scalars.len())].clone(),
        2 => json!({"type": "array", "items": any_type(random, depth - 1)}),
        3 => json!({"type": "object", "additionalProperties": any_type(random, depth - 1)}),
        4 => {
            json!({"type": "object", "default": {}, "properties": {"a": any_type(random, depth - 1), "d": any_type(random, depth - 1)}})
        }
        5 => {
            json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": any_type(random, depth - 1)}})
        }
        _ => {
            json!({"type": "object", "properties": {"b": any_type(random, depth - 1), "c": any_type(random, depth - 1)}})
        }
    }
}

/// The same type with restrictions, some of them inside alternatives.
fn restricted(random: &mut Random, mut schema: Value, depth: usize) -> Value {
    if depth > 0 && random.below(6) == 0 {
        schema["nullable"] = json!(true);
    }
    let kind = schema["type"].as_str().unwrap_or_default().to_owned();
    let fields: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    let ask = |random: &mut Random| {
        let (keyword, value) = restriction(random, &kind, &fields);
        Map::from_iter([(keyword.to_owned(), value)])
    };
    let asked = ask(random);
    match random.below(7) {
        0 => schema["anyOf"] = json!([asked, ask(random)]),
        1 => schema["allOf"] = json!([asked, ask(random)]),
        2 => schema["oneOf"] = json!([asked, ask(random)]),
        3 => schema["not"] = json!(asked),
        _ => schema.as_object_mut().expect("a schema").extend(asked),
    }
    schema
}

fn restriction(random: &mut Random, kind: &str, fields: &[String]) -> (&'static str, Value) {
    let count = json!(random.below(4));
    let field = random.below(fields.len().max(1));
    let field = fields.get(field).filter(|name| *name != "metadata");
    let choices = match (kind, field) {
        ("string", _) => vec![
            ("minLength", count.clone()),
            ("maxLength", count),
            ("pattern", json!(["^a", "^[a-z]+$", "x|y"][random.below(3)])),
            ("enum", json!(["x", "y", "text"])),
            (
                "format",
                json!(["date-time", "ipv4", "byte", "duration", "no-such-format"][random.below(5)]),
            ),
        ],
        ("integer" | "number", _) => vec![
            ("minimum", count.clone()),
            ("maximum", json!(random.below(90))),
            ("multipleOf", json!(random.below(4) + 1)),
            ("enum", json!([1, 2, 7])),
            ("format", json!(["int32", "int64", "double"][random.below(3)])),
        ],
        ("array", _) => vec![("minItems", count.clone()), ("maxItems", count)],
        ("object", Some(name)) => vec![
            ("required", json!([name, "d"])),
            ("minProperties", count.clone()),
            ("maxProperties", count),
        ],
        ("object", None) => vec![
            ("minProperties", count.clone()),
            ("maxProperties", count),
            ("required", json!(["e"])),
        ],
        _ => vec![("maximum", count.clone()), ("maxLength", count)],
    };
    choices[random.below(choices.len())].clone()
}

/// An object that may fit the schema or not.
pub fn object(random: &mut Random, depth: usize) -> Value {
    let names = ["a", "b", "c", "d", "e"];
    let fields = (0..random.below(5)).map(|_| (names[random.below(5)].to_owned(), value(random, depth)));
    Value::Object(fields.collect::<Vec<_>>().into_iter().collect())
}

const TEXTS: [&str; 7] = ["text", "x", "", "abc", "2026-01-02T03:04:05Z", "10.0.0.1", "5m"];

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => json!(TEXTS[random.below(TEXTS.len())]),
        1 => json!(random.below(100)),
        2 => json!(true),
        3 => Value::Null,
        4 => json!(random.below(9) as f64 / 4.0),
        5 => (0..random.below(3)).map(|_| value(random, depth - 1)).collect(),
        _ => object(random, depth - 1),
    }
}

/// A value of the types that a schema asks for, but not always, and not always as it asks for more.
pub fn fitting(random: &mut Random, schema: &Value, depth: usize) -> Value {
    if depth == 0 || random.below(8) == 0 {
        return value(random, 1);
    }
    match schema["type"].as_str() {
        Some("string") => json!(TEXTS[random.below(TEXTS.len())]),
        Some("integer") => json!(random.below(100)),
        Some("number") => json!(random.below(9) as f64 / 4.0),
        Some("boolean") => json!(random.below(2) == 0),
        Some("array") => (0..random.below(4)).map(|_| fitting(random, &schema["items"], depth - 1)).collect(),
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let mut fields = Map::new();
            for (name, property) in properties.filter(|(name, _)| *name != "metadata") {
                if random.below(4) > 0 {
                    fields.insert(name.clone(), fitting(random, property, depth - 1));
                }
            }
            if schema["additionalProperties"].is_object() {
                fields.insert("k".into(), fitting(random, &schema["additionalProperties"], depth - 1));
            }
            if schema["additionalProperties"] == false && random.below(2) == 0 {
                fields.insert("k".into(), value(random, depth - 1));
            }
            fields.into()
        }
        _ => value(random, depth),
    }
}

/// Marsaglia's xorshift.
pub struct Random(fastrand::Rng);

impl Random {
    /// Begins the sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// A number under a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }
}
