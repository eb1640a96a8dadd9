//! Protobuf against what a kube-apiserver answered: `data/protobuf/answers.yaml` holds the same answer in JSON and in
//! protobuf. Another one adds no Rust.

mod malformed;
mod random;

use base64::prelude::{BASE64_STANDARD, Engine};
use flyball_schema::protobuf;
use serde_json::Value;
use std::path::Path;

#[test]
fn every_answer_is_read_as_the_server_says_it_in_json() {
    check(|json, bytes| {
        let mut read = protobuf::decode_object(bytes).map_err(|error| error.to_string())?;
        let mut expected = json.clone();
        without_nothing(&mut read);
        without_nothing(&mut expected);
        // The oldest lists have no version.
        if expected.get("apiVersion").is_none() {
            expected["apiVersion"] = "".into();
        }
        // Objects within an object have a type in JSON only.
        for place in ["/items", "/spec/volumeClaimTemplates"] {
            let items = expected.pointer_mut(place).and_then(Value::as_array_mut);
            for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
                item.retain(|name, _| name != "apiVersion" && name != "kind");
            }
        }
        match differing(&read, &expected) {
            (Value::Null, Value::Null) => Ok(()),
            (read, expected) => Err(format!("\n    read {read}\nexpected {expected}")),
        }
    });
}

#[test]
fn every_answer_is_written_byte_for_byte_as_the_server_writes_it() {
    check(|json, bytes| {
        let written = protobuf::encode_object(json).map_err(|error| error.to_string())?;
        let differs = written.iter().zip(bytes).position(|(one, other)| one != other);
        let differs = differs.or((written.len() != bytes.len()).then_some(written.len().min(bytes.len())));
        let Some(at) = differs else { return Ok(()) };
        let around = |bytes: &[u8]| bytes[at.saturating_sub(24)..(at + 40).min(bytes.len())].escape_ascii().to_string();
        Err(format!("at byte {at}\n written {}\nexpected {}", around(&written), around(bytes)))
    });
}

/// The innermost parts that differ, so that a failure can be read.
fn differing(read: &Value, expected: &Value) -> (Value, Value) {
    let (Value::Object(one), Value::Object(other)) = (read, expected) else {
        return match read == expected {
            true => (Value::Null, Value::Null),
            false => (read.clone(), expected.clone()),
        };
    };
    let names = one.keys().chain(other.keys());
    let mut parts = names.map(|name| differing(&read[name], &expected[name]));
    parts.find(|parts| *parts != (Value::Null, Value::Null)).unwrap_or_default()
}

fn check(check: impl Fn(&Value, &[u8]) -> Result<(), String>) {
    let cases = cases("answers.yaml");
    assert!(cases.len() >= 80, "only {} answers were found", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let bytes = BASE64_STANDARD.decode(case["protobuf"].as_str()?).ok()?;
            let failure = check(&case["json"], &bytes).err()?;
            Some(format!("{}: {failure}", case["name"]))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} differ\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/protobuf").join(file);
    let text = std::fs::read_to_string(&path).expect("the file of cases is there");
    serde_saphyr::from_str(&text).expect("the file of cases is YAML")
}

/// Go writes null for a list that is not there; protobuf has nothing for it, and nothing for an empty one either.
fn without_nothing(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(without_nothing);
            fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
            fields.retain(|name, value| name != "metadata" || value.as_object().is_none_or(|it| !it.is_empty()));
        }
        Value::Array(items) => items.iter_mut().for_each(without_nothing),
        _ => {}
    }
}
