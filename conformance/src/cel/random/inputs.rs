//! The variables of random expressions: their types, and random values for both sides.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use flyball_cel::value::{Duration, Timestamp};
use flyball_cel::{Bindings, Map, Type, Value};
use serde_json::{Value as Json, json};

use super::generate::Random;

/// Every variable and its type.
pub static TYPES: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let types = [
        ("i", "int"),
        ("j", "int"),
        ("u", "uint"),
        ("d", "double"),
        ("b", "bool"),
        ("c", "bool"),
        ("s", "string"),
        ("t", "string"),
        ("y", "bytes"),
        ("at", "timestamp"),
        ("span", "duration"),
        ("li", "list(int)"),
        ("ls", "list(string)"),
        ("ld", "list(double)"),
        ("ll", "list(list(int))"),
        ("mi", "map(string, int)"),
        ("ms", "map(string, string)"),
        ("any", "dyn"),
        ("md", "map(string, dyn)"),
    ];
    types.into()
});

/// A type by its name in [`TYPES`].
pub fn type_named(name: &str) -> Type {
    match name {
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "bool" => Type::Bool,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "list(int)" => Type::list(Type::Int),
        "list(string)" => Type::list(Type::String),
        "list(double)" => Type::list(Type::Double),
        "list(list(int))" => Type::list(Type::list(Type::Int)),
        "map(string, int)" => Type::map(Type::String, Type::Int),
        "map(string, string)" => Type::map(Type::String, Type::String),
        "map(string, dyn)" => Type::map(Type::String, Type::Dyn),
        _ => Type::Dyn,
    }
}

const INTEGERS: [i64; 12] = [0, 1, -1, 2, 3, 7, 10, 100, -128, i64::MAX, i64::MIN, 1 << 53];
const UNSIGNED: [u64; 6] = [0, 1, 2, 7, u64::MAX, 1 << 63];
const DOUBLES: [&str; 10] = [
    "0",
    "1",
    "-1",
    "0.5",
    "2.5",
    "1e10",
    "-1e300",
    "9223372036854775807",
    "NaN",
    "Inf",
];
const STRINGS: [&str; 22] = [
    "",
    "a",
    "b",
    "abc",
    "ABC",
    "a,b,c",
    " a ",
    "äöü",
    "😀x",
    "12",
    "-5",
    "1.5",
    "true",
    "1h30m",
    "a\nb\"c\\",
    "2023-02-03T04:05:06Z",
    "10.0.0.1",
    "10.0.0.0/8",
    "https://u@example.com:80/a%20b?k=v&k=w",
    "1.2.3",
    "1Gi",
    "a.b-c",
];
const TIMES: [&str; 6] = [
    "1970-01-01T00:00:00Z",
    "2023-02-03T04:05:06.789Z",
    "2024-02-29T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2023-07-01T12:00:00+05:30",
];
const SPANS: [&str; 7] = ["0s", "1s", "-1h", "1h30m", "1500ms", "2562047h", "3ns"];

/// Random values of all variables.
pub fn values(random: &mut Random) -> BTreeMap<&'static str, Json> {
    TYPES.iter().map(|(name, kind)| (*name, value(kind, random))).collect()
}

fn value(kind: &str, random: &mut Random) -> Json {
    match kind {
        "int" => json!(random.one_of(&INTEGERS).to_string()),
        "uint" => json!(random.one_of(&UNSIGNED).to_string()),
        "double" => json!(random.one_of(&DOUBLES)),
        "bool" => json!(random.below(2) == 0),
        "string" => json!(random.one_of(&STRINGS)),
        "bytes" => json!(random.one_of(&["", "61", "c3a4", "ff", "00ff41"])),
        "timestamp" => json!(random.one_of(&TIMES)),
        "duration" => json!(random.one_of(&SPANS)),
        "map(string, int)" => entries("int", random),
        "map(string, string)" => entries("string", random),
        "map(string, dyn)" => Json::Object((0..random.below(3)).map(|_| (key(random), anything(random, 2))).collect()),
        "dyn" => anything(random, 2),
        list => {
            let element = list.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')')).unwrap_or("int");
            (0..random.below(5)).map(|_| value(element, random)).collect()
        }
    }
}

fn key(random: &mut Random) -> String {
    (*random.one_of(&["a", "b", "c", "k", "", "x.y"])).to_owned()
}

fn entries(kind: &str, random: &mut Random) -> Json {
    Json::Object((0..random.below(3)).map(|_| (key(random), value(kind, random))).collect())
}

fn anything(random: &mut Random, depth: usize) -> Json {
    match random.below(if depth > 0 { 7 } else { 5 }) {
        0 => Json::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(*random.one_of(&[0, 1, -3, 42])),
        3 => json!(*random.one_of(&[0.5, -2.5, 1e300])),
        4 => json!(random.one_of(&STRINGS)),
        5 => (0..random.below(3)).map(|_| anything(random, depth - 1)).collect(),
        _ => Json::Object((0..random.below(3)).map(|_| (key(random), anything(random, depth - 1))).collect()),
    }
}

/// The values as our engine takes them.
pub fn bindings<'a>(values: &'a BTreeMap<&'static str, Json>) -> Bindings<'a> {
    let mut bindings = Bindings::new();
    for (name, value) in values {
        let kind = TYPES.get(name).copied().unwrap_or("dyn");
        bindings = bindings.bind(name, bound(kind, value));
    }
    bindings
}

fn bound<'a>(kind: &str, value: &'a Json) -> Value<'a> {
    let text = value.as_str().unwrap_or_default();
    match kind {
        "int" => Value::Int(text.parse().expect("an integer")),
        "uint" => Value::Uint(text.parse().expect("an integer")),
        "double" => Value::Double(text.parse().expect("a number")),
        "bytes" => Value::bytes(unhexed(text)),
        "timestamp" => Value::Timestamp(Timestamp::parse(text).expect("a timestamp")),
        "duration" => Value::Duration(Duration::parse(text).expect("a duration")),
        "map(string, int)" => {
            let entries = value.as_object().into_iter().flatten();
            let entries = entries.map(|(key, value)| (Value::text(key), bound("int", value)));
            Value::Map(Map::of(entries).expect("keys of text"))
        }
        "dyn" | "string" | "bool" | "list(string)" | "map(string, string)" | "map(string, dyn)" => Value::json(value),
        list => {
            let element = list.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')')).unwrap_or("dyn");
            Value::list(value.as_array().into_iter().flatten().map(|item| bound(element, item)).collect())
        }
    }
}

fn unhexed(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}
