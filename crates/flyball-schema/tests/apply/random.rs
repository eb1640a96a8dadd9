//! Random configurations of several managers: what has to hold whatever they are. A failure names its seed.

use flyball_schema::kinds;
use flyball_schema::managed_fields::{self, Request};
use flyball_schema::schema::{Form, ListKind, Node};
use serde_json::{Map, Value, json};

const SEEDS: u64 = 25;

#[test]
fn applying_again_changes_nothing() {
    for seed in 0..SEEDS {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        let mut live = None;
        for step in 0..6 {
            let manager = ["one", "two", "three"][random.below(3)];
            let config = configuration(&mut random);
            let applied = managed_fields::apply(&request(live.as_ref(), manager), &config, true);
            live = applied.unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}")).or(live);
            let again = managed_fields::apply(&request(live.as_ref(), manager), &config, false);
            assert_eq!(again, Ok(None), "seed {seed}, step {step}: {config} on {live:?}");
        }
    }
}

#[test]
fn entries_are_written_as_they_were_read() {
    for seed in 0..SEEDS {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        let mut live = None;
        for manager in ["one", "two", "three"] {
            let config = configuration(&mut random);
            live = managed_fields::apply(&request(live.as_ref(), manager), &config, true).unwrap().or(live);
        }
        let live = live.unwrap();
        let mut new = live.clone();
        managed_fields::update(&request(Some(&live), "four"), &mut new);
        assert_eq!(new, live, "seed {seed}");
    }
}

#[test]
fn what_was_applied_can_be_read_back_and_applied_again() {
    for seed in 0..SEEDS {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        let config = configuration(&mut random);
        let live = managed_fields::apply(&request(None, "one"), &config, false).unwrap().unwrap();
        let mut extracted = managed_fields::extract(deployment(), &live, "one", None).unwrap();
        extracted["metadata"]["name"] = json!("x");
        let again = managed_fields::apply(&request(Some(&live), "one"), &extracted, false);
        assert_eq!(again, Ok(None), "seed {seed}: {extracted} of {live}");
    }
}

#[test]
fn an_owner_that_lets_go_of_everything_leaves_what_others_own() {
    for seed in 0..SEEDS {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        let (first, second) = (configuration(&mut random), configuration(&mut random));
        let nothing = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}});
        let apply = |live: &Value, manager: &str, config: &Value| {
            managed_fields::apply(&request(Some(live), manager), config, true)
                .unwrap()
                .unwrap_or_else(|| live.clone())
        };
        let alone = managed_fields::apply(&request(None, "two"), &second, true).unwrap().unwrap();
        let both = apply(
            &managed_fields::apply(&request(None, "one"), &first, true).unwrap().unwrap(),
            "two",
            &second,
        );
        let left = apply(&both, "one", &nothing);
        let kept = managed_fields::extract(deployment(), &left, "two", None);
        assert_eq!(kept, managed_fields::extract(deployment(), &alone, "two", None), "seed {seed}");
    }
}

#[test]
fn no_json_is_too_strange() {
    for seed in 0..SEEDS {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        let mut live = configuration(&mut random);
        live["metadata"]["uid"] = json!("1");
        live["metadata"]["managedFields"] = anything(&mut random, 4);
        let mut config = anything(&mut random, 5);
        if let Value::Object(fields) = &mut config {
            fields.insert("apiVersion".into(), json!("apps/v1"));
            fields.insert("kind".into(), json!("Deployment"));
        }
        let refused = managed_fields::apply(&request(Some(&live), "one"), &config, false).is_err();
        let mut new = if refused { anything(&mut random, 5) } else { config };
        managed_fields::update(&request(Some(&live), "one"), &mut new);
        managed_fields::keep_timestamps(&live, &mut new);
    }
}

/// Numbers that follow from a seed.
struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }
}

fn deployment() -> Node<'static> {
    let resource = kinds::builtin().kind("apps", "v1", "Deployment").expect("a built-in kind");
    kinds::builtin().schemas.node(resource.schema.expect("a kind with a type"))
}

fn request<'a>(live: Option<&'a Value>, manager: &'a str) -> Request<'a> {
    Request {
        node: deployment(),
        live,
        manager,
        api_version: "apps/v1",
        kind: "Deployment",
        subresource: None,
        reset: &["status"],
        versions: &[],
        now: "2026-01-01T00:00:00Z",
    }
}

/// A configuration that fits its type. No map or list of it is empty: those are not stored.
fn configuration(random: &mut Random) -> Value {
    let spec = deployment().field("spec").expect("a Deployment has a spec");
    let mut config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}});
    config["metadata"]["labels"] = json!({letter(random): letter(random)});
    config["spec"] = value(random, spec, 9).unwrap_or_else(|| json!({"replicas": 1}));
    config
}

fn value(random: &mut Random, node: Node<'_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match &node.form {
        Form::Boolean => json!(random.below(2) == 1),
        Form::Integer | Form::Number => json!(random.below(12)),
        Form::String | Form::IntOrString | Form::Quantity => json!(letter(random)),
        Form::Any => anything(random, 2),
        Form::Map(map) => json!({letter(random): value(random, node.at(map.values), depth)?}),
        Form::Object(object) => {
            let mut fields = Map::new();
            for field in &object.fields {
                // Few fields of types that have many, and those that lead to lists with keys.
                let rare = object.fields.len() / 4 + 1;
                let wanted = ["template", "spec", "containers", "ports", "env"].contains(&&*field.name);
                if (wanted || random.below(rare) == 0)
                    && let Some(value) = value(random, node.at(field.schema), depth)
                {
                    fields.insert(field.name.to_string(), value);
                }
            }
            if fields.is_empty() {
                return None;
            }
            Value::Object(fields)
        }
        Form::List(list) => {
            let mut items: Vec<Value> = Vec::new();
            for _ in 0..=random.below(3) {
                let mut item = value(random, node.at(list.items), depth)?;
                if let ListKind::Map(keys) = &list.kind {
                    for key in keys {
                        item[&**key] = value(random, node.at(list.items).field(key)?, 1)?;
                    }
                }
                if !items.iter().any(|known| same_item(&list.kind, known, &item)) {
                    items.push(item);
                }
            }
            Value::Array(items)
        }
    })
}

fn same_item(kind: &ListKind, a: &Value, b: &Value) -> bool {
    match kind {
        ListKind::Atomic => false,
        ListKind::Set => a == b,
        ListKind::Map(keys) => keys.iter().all(|key| a[&**key] == b[&**key]),
    }
}

fn letter(random: &mut Random) -> &'static str {
    ["a", "b", "c", "<d>", "é"][random.below(5)]
}

/// Any JSON, with words that mean something to the code under test.
fn anything(random: &mut Random, depth: usize) -> Value {
    const WORDS: [&str; 16] = [
        "metadata",
        "spec",
        "managedFields",
        "fieldsV1",
        "fieldsType",
        "FieldsV1",
        "operation",
        "Apply",
        "apiVersion",
        "f:spec",
        "k:{\"name\":\"a\"}",
        "k:{",
        "v:1",
        "i:x",
        ".",
        "é",
    ];
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 1),
        2 => json!(random.below(100)),
        3 => json!(0.5),
        4 => json!(WORDS[random.below(16)]),
        5 | 6 => (0..random.below(4)).map(|_| anything(random, depth - 1)).collect(),
        _ => {
            let fields =
                (0..random.below(6)).map(|_| (WORDS[random.below(16)].to_owned(), anything(random, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}
