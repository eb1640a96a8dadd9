//! Sequences of applies and other writes by several managers, as `flyball-schema` holds its engine to them: here they are
//! sent to a server, ours or the real one, and what comes of each write is compared with what is written down.

mod clock;
pub mod outcome;
pub mod replay;
pub mod written;

use std::fs;
use std::path::{Path, PathBuf};

use flyball_schema::kinds;
use serde_json::{Value, json};

/// Where the files of sequences are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/flyball-schema/tests/data/apply")
}

/// One file of sequences.
pub struct Document {
    /// The file's name without `.yaml`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What is said to the reader before anything else.
    pub comments: Vec<String>,
    /// Everything in it.
    pub value: Value,
}

impl Document {
    /// Its sequences.
    pub fn sequences(&self) -> &[Value] {
        items(&self.value["sequences"])
    }

    /// Whether the definition changes while objects are there.
    pub fn redefines(&self) -> bool {
        self.sequences()
            .iter()
            .flat_map(|sequence| items(&sequence["steps"]))
            .any(|step| step.get("crd").is_some())
    }

    /// The collection in which a version's objects of a kind are, in a namespace where they have one.
    pub fn collection(&self, api_version: &str, kind: &str, namespace: &str) -> Result<String, String> {
        let (plural, namespaced) = match &self.value["crd"]["spec"] {
            Value::Object(spec) if spec["names"]["kind"] == kind => {
                (text(&spec["names"], "plural").to_owned(), spec["scope"] == "Namespaced")
            }
            _ => {
                let found = kinds::builtin()
                    .resources
                    .iter()
                    .find(|resource| resource.api_version() == api_version && &*resource.kind == kind);
                let resource = found.ok_or_else(|| format!("no kind is called {api_version} {kind}"))?;
                (resource.plural.to_string(), resource.namespaced)
            }
        };
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let inside = if namespaced {
            format!("/namespaces/{namespace}")
        } else {
            String::new()
        };
        Ok(format!("{root}/{api_version}{inside}/{plural}"))
    }
}

/// Reads every file of sequences, by name.
pub fn read_all() -> Result<Vec<Document>, String> {
    let directory = directory();
    let unreadable = |error| format!("read {}: {error}", directory.display());
    let entries: Vec<_> = fs::read_dir(&directory).and_then(Iterator::collect).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Result<Document, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let comments = text.lines().take_while(|line| line.starts_with('#')).map(str::to_owned).collect();
    let value = serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Document { name, path, comments, value })
}

/// The body of a step's request, with what all of them have.
pub fn body(sequence: &Value, step: &Value, given: &Value) -> Value {
    let mut body = json!({"apiVersion": version(sequence, step), "kind": sequence["kind"], "metadata": {"name": "x"}});
    for (name, value) in given.as_object().into_iter().flatten() {
        match (name.as_str(), value.as_object()) {
            ("metadata", Some(fields)) => {
                fields.iter().for_each(|(name, value)| body["metadata"][name] = value.clone());
            }
            _ => body[name] = value.clone(),
        }
    }
    body
}

/// The version in which a step is written.
pub fn version<'a>(sequence: &'a Value, step: &'a Value) -> &'a str {
    step["version"].as_str().unwrap_or_else(|| text(sequence, "apiVersion"))
}

/// How many managers write in a sequence.
pub fn managers(sequence: &Value) -> usize {
    let steps = items(&sequence["steps"]).iter();
    let names: std::collections::BTreeSet<&str> = steps.filter_map(|step| step["manager"].as_str()).collect();
    names.len()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}
