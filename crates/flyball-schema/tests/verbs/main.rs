//! Every verb against its cases: `tests/data/*.yaml` hold them, one `check` each runs them.

mod custom;
mod decoding;
mod depth;
mod names;
mod patches;
mod policies;
mod properties;
mod quantities;
mod random;
mod selectors;
mod strategic;

use serde_json::Value;
use std::path::Path;

/// Runs every case of a file and reports all that fail, by name.
fn check_all(file: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let text = std::fs::read_to_string(&path).expect("the file of cases is there");
    let cases: Vec<Value> = serde_saphyr::from_str(&text).expect("the file of cases is YAML");
    let mut failures = Vec::new();
    for case in &cases {
        if let Err(failure) = check(case) {
            failures.push(format!("{}: {failure}", case["case"]));
        }
    }
    assert!(!cases.is_empty(), "{file} has no cases");
    assert!(
        failures.is_empty(),
        "{} of {} failed\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

/// Compares what a verb gave with what the case expects.
fn same(given: &Value, expected: &Value) -> Result<(), String> {
    if given == expected {
        Ok(())
    } else {
        Err(format!("\n   given {given}\nexpected {expected}"))
    }
}

/// Violations as `path: message` lines, the way a Status shows them.
fn lines(violations: &[flyball_schema::violation::Violation]) -> Value {
    violations.iter().map(ToString::to_string).collect()
}

fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_default()
}
