//! Expressions with what cel-go 0.26 made of them, in Kubernetes 1.36's environment or in a plain one: value or error, cost,
//! and estimated cost. The data was written by a program on cel-go; a new case adds no Rust.

use flyball_cel::{Bindings, CompileError, Env, Library, Type, UnknownSizes, Value};
use serde_json::{Value as Json, json};

fn env(name: &str) -> Env {
    let base = match name {
        "plain" => Env::new([
            Library::Standard,
            Library::Optional(2),
            Library::Bindings,
            Library::Strings(4),
            Library::Lists(3),
            Library::Math(2),
            Library::Sets,
            Library::Encoders,
            Library::TwoVariables,
        ])
        .quoted_identifiers(),
        _ => Env::kubernetes(),
    };
    base.variable("self", Type::Dyn).variable("i", Type::Int).variable("s", Type::String)
}

/// What the data says of a case, made here.
fn observe(case: &Json) -> Json {
    let text = case["expr"].as_str().expect("an expression");
    let env = env(case["env"].as_str().expect("an environment"));
    let mut seen = json!({"env": case["env"], "expr": case["expr"]});
    let program = match env.compile(text) {
        Ok(program) => program,
        Err(CompileError::Invalid(issues)) => {
            seen["issue"] = issues.to_string().into();
            return seen;
        }
        Err(CompileError::Program(message)) => {
            seen["prog"] = message.into();
            return seen;
        }
    };
    let estimate = env.estimate_cost(program.checked(), &UnknownSizes);
    seen["estimate"] = json!([estimate.min, estimate.max]);
    let object = json!({"a": {"b": [1, 2, 3], "c": "x"}, "name": "web", "n": 3, "d": 1.5, "l": ["a", "b"]});
    let bindings = Bindings::new()
        .bind("i", Value::Int(5))
        .bind("s", Value::text("héllo wörld"))
        .bind("self", Value::json(&object));
    let evaluation = program.evaluate_within(&bindings, u64::MAX);
    seen["cost"] = evaluation.cost.into();
    match evaluation.result {
        Ok(value) => seen["val"] = value.notation().into(),
        Err(error) => seen["err"] = error.message().into(),
    }
    seen
}

#[test]
fn expressions_do_what_they_do_in_cel_go() {
    let cases = include_str!("data/observed.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let cases: Vec<Json> = cases.collect();
    assert!(cases.len() > 150);
    for case in cases {
        assert_eq!(observe(&case), case);
    }
}
