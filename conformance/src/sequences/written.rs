//! Writes a file of sequences anew, with what a real server made of each step.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::outcome::Outcome;
use super::replay::Outcomes;
use super::{Document, items};

/// Fields of a step that say what a server made of it.
const ANSWERS: [&str; 4] = ["object", "managed", "error", "unchanged"];
/// Fields of a sequence and of a step, in the order in which they are written.
const OF_SEQUENCE: [&str; 5] = ["name", "apiVersion", "kind", "server", "unowned"];
const OF_STEP: [&str; 10] = [
    "crd",
    "create",
    "update",
    "merge",
    "apply",
    "version",
    "manager",
    "subresource",
    "force",
    "reset",
];

/// Writes what was observed into the document's file.
pub fn write(document: &Document, outcomes: &Outcomes) -> Result<(), String> {
    let mut text = document.comments.join("\n");
    text.push('\n');
    for (name, value) in document.value.as_object().into_iter().flatten().filter(|(name, _)| *name != "sequences") {
        line(&mut text, "", name, value);
    }
    text.push_str("sequences:\n");
    for (sequence, outcomes) in document.sequences().iter().zip(outcomes) {
        fields(&mut text, "- ", sequence, &OF_SEQUENCE);
        text.push_str("  steps:\n");
        for (step, outcome) in items(&sequence["steps"]).iter().zip(outcomes) {
            fields(&mut text, "  - ", step, &OF_STEP);
            answer(&mut text, outcome);
        }
    }
    fs::write(&document.path, text).map_err(|error| format!("write {}: {error}", document.path.display()))
}

fn fields(text: &mut String, dash: &str, value: &Value, names: &[&str]) {
    let mut before = dash.to_owned();
    let unknown = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let unknown = unknown.filter(|name| !names.contains(name) && !ANSWERS.contains(name) && *name != "steps");
    for name in names.iter().copied().chain(unknown) {
        if let Some(value) = value.get(name) {
            line(text, &before, name, value);
            before = " ".repeat(dash.len());
        }
    }
}

fn answer(text: &mut String, outcome: &Outcome) {
    match outcome {
        Outcome::Nothing => {}
        Outcome::Refused(error) => line(text, "    ", "error", error),
        Outcome::Written { object, managed, unchanged } => {
            line(text, "    ", "object", object);
            if !managed.is_empty() {
                text.push_str("    managed:\n");
            }
            for entry in managed {
                writeln!(text, "    - {entry}").expect("a string can be written to");
            }
            if *unchanged {
                line(text, "    ", "unchanged", &Value::Bool(true));
            }
        }
    }
}

fn line(text: &mut String, before: &str, name: &str, value: &Value) {
    writeln!(text, "{before}{name}: {value}").expect("a string can be written to");
}
