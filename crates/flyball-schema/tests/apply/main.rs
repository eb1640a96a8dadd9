//! Sequences of applies and other writes, compared step by step with what a kube-apiserver answered to them.
//! A sequence is data: see the files in `data/apply`. Another one adds no Rust.

mod foreign;
mod kind;
mod object;
mod random;
mod scale;
mod step;

use kind::Kind;
use serde_json::Value;
use step::Step;

#[test]
fn every_write_leaves_the_fields_and_owners_that_kube_apiserver_leaves() {
    let mut sequences = 0;
    let mut failures = Vec::new();
    for (file, document) in documents() {
        for sequence in items(&document["sequences"]) {
            sequences += 1;
            // What the kind itself does shows, and only a server knows that.
            if sequence["server"] == true {
                continue;
            }
            if let Err(failure) = check(&document, sequence) {
                failures.push(format!("{file}: {}: {failure}", text(sequence, "name")));
            }
        }
    }
    assert!(sequences >= 160, "only {sequences} sequences were found");
    assert!(
        failures.is_empty(),
        "{} of {sequences} sequences differ\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// The files of sequences, with their names.
fn documents() -> Vec<(String, Value)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/apply");
    let files = std::fs::read_dir(directory).expect("the directory of sequences is there");
    let mut documents: Vec<_> = files
        .map(|file| {
            let file = file.expect("a file can be listed");
            let text = std::fs::read_to_string(file.path()).expect("a file can be read");
            let document = serde_saphyr::from_str(&text).expect("a file of sequences is YAML");
            (file.file_name().display().to_string(), document)
        })
        .collect();
    documents.sort_by(|a, b| a.0.cmp(&b.0));
    documents
}

/// Runs a sequence, each step on what kube-apiserver stored after the step before.
fn check(document: &Value, sequence: &Value) -> Result<(), String> {
    let mut kind = Kind::of(&document["crd"]["spec"]["versions"]);
    let mut live = None;
    for (index, step) in items(&sequence["steps"]).iter().enumerate() {
        if step.get("crd").is_some() {
            kind = Kind::of(&step["crd"]);
            continue;
        }
        let step = Step::new(document, sequence, step, index + 1);
        step.check(&kind, live.as_ref())
            .map_err(|failure| format!("step {}: {failure}", index + 1))?;
        live = step.observed().or(live);
    }
    Ok(())
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
