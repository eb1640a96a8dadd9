//! Random objects that a structural schema allows, except that patterns and rules are not looked at.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Schemas are never that deep; objects that refer to themselves end here.
const MAX_DEPTH: usize = 12;
const TEXTS: [&str; 6] = ["", "a", "fast", "ü\u{1f600}", "x\ny", "0"];
const NAMES: [&str; 4] = ["a", "b", "name", "x-y/z"];

/// An object of a kind, with metadata.
pub(crate) fn object(random: &mut Rng, schema: &Value, api_version: &str, kind: &str) -> Value {
    let mut object = fields(random, schema, 0);
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    let mut metadata =
        json!({ "name": format!("random-{}", random.u32(..)), "namespace": "default", "uid": "705ab4f5" });
    if random.bool() {
        metadata["annotations"] = json!({ "example.dev/note": text(random) });
    }
    if random.bool() {
        metadata["labels"] = json!({ "app": "a" });
    }
    object.insert("metadata".into(), metadata);
    object.into()
}

fn fields(random: &mut Rng, schema: &Value, depth: usize) -> Map<String, Value> {
    let mut fields = Map::new();
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if depth == 0 && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        if required(name) || (depth < MAX_DEPTH && random.u8(..10) < 7) {
            fields.insert(name.clone(), value(random, schema, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() && depth < MAX_DEPTH {
        for name in &NAMES[..random.usize(..=NAMES.len())] {
            fields.insert((*name).into(), value(random, &schema["additionalProperties"], depth + 1));
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true && random.bool() {
        fields.insert("unknown".into(), anything(random));
    }
    fields
}

fn value(random: &mut Rng, schema: &Value, depth: usize) -> Value {
    if schema["nullable"] == true && random.u8(..10) == 0 {
        return Value::Null;
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<_> = choices.iter().filter(|choice| !choice.is_null()).collect();
        return choices.get(random.usize(..choices.len().max(1))).copied().cloned().unwrap_or_default();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if random.bool() {
            integer(random, schema).into()
        } else {
            text(random).into()
        };
    }
    match schema["type"].as_str() {
        Some("string") => string(random, schema).into(),
        Some("integer") => integer(random, schema).into(),
        Some("number") => (integer(random, schema) as f64 / 4.0).into(),
        Some("boolean") => random.bool().into(),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
            let most = schema["maxItems"].as_u64().map_or(least + 3, |most| (most as usize).min(least + 3));
            (0..random.usize(least..=most))
                .map(|_| value(random, &schema["items"], depth + 1))
                .collect()
        }
        Some("object") => fields(random, schema, depth).into(),
        _ => anything(random),
    }
}

fn integer(random: &mut Rng, schema: &Value) -> i64 {
    let (low, high) = match schema["format"].as_str() {
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64" | "uint") => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    };
    let bound = |name: &str| schema[name].as_f64().map(|bound| bound as i64);
    let low = low.max(bound("minimum").unwrap_or(low));
    let high = high.min(bound("maximum").unwrap_or(high)).max(low);
    // Small numbers are as likely as large ones.
    let near = random.i64(..) >> random.u32(..64);
    match random.bool() {
        true => near.clamp(low, high),
        false => random.i64(low..=high),
    }
}

fn string(random: &mut Rng, schema: &Value) -> String {
    match schema["format"].as_str() {
        Some("date-time") => ["2026-01-02T03:04:05Z", "1999-12-31T23:59:59Z"][random.usize(..2)].into(),
        Some("byte") => ["", "AA==", "/+8x"][random.usize(..3)].into(),
        _ => {
            let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
            let most = schema["maxLength"].as_u64().map_or(usize::MAX, |most| most as usize);
            let mut text: String = text(random).chars().take(most).collect();
            while text.chars().count() < least {
                text.push('x');
            }
            text
        }
    }
}

fn text(random: &mut Rng) -> &'static str {
    TEXTS[random.usize(..TEXTS.len())]
}

fn anything(random: &mut Rng) -> Value {
    let values = [
        json!(true),
        json!(7),
        json!("x"),
        json!([1, "a"]),
        json!({ "a": { "b": null } }),
    ];
    values[random.usize(..values.len())].clone()
}
