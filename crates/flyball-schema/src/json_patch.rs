//! JSON patch (RFC 6902), with the liberties and the complaints of the library that Kubernetes uses.
// gopkg.in/evanphx/json-patch.v4, patch.go; apiserver/pkg/endpoints/handlers/patch.go, applyJSPatch

mod pointer;

use crate::decode::{DecodeError, Document, MAX_DEPTH};
use crate::go_text;
use pointer::Container;
use serde_json::{Map, Value};

const MOST_OPERATIONS: usize = 10_000;
const MOST_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How many items may change their places; ten thousand operations at the beginning of a long list take Go a minute.
const MOST_MOVED: usize = 50_000_000;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch: 400.
    #[error("{0}")]
    Malformed(String),
    /// It is too much: 413.
    #[error("The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation does not apply: 422.
    #[error("{0}")]
    Inapplicable(String),
    /// A test fails: 422.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
}

impl From<String> for PatchError {
    fn from(why: String) -> PatchError {
        PatchError::Inapplicable(why)
    }
}

/// A patch that has been read, and what strict field validation has against it.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Map<String, Value>>,
    /// Whether no test for null holds, as in a patch that Go did not read from JSON.
    refuses_null: bool,
    /// `json patch unknown field "[0].foo"` and the like.
    pub complaints: Vec<String>,
}

/// Reads a patch and applies it; a patch that fails halfway leaves the value in between.
pub fn apply(value: &mut Value, patch: &[u8]) -> Result<(), PatchError> {
    JsonPatch::read(patch)?.apply(value)
}

impl JsonPatch {
    /// Reads a patch from JSON.
    pub fn read(bytes: &[u8]) -> Result<JsonPatch, PatchError> {
        let decoded = Document::json(bytes).and_then(Document::untyped).map_err(|error| match error {
            DecodeError::Json(text) | DecodeError::Yaml(text) | DecodeError::Type(text) => {
                PatchError::Malformed(format!("error decoding patch: {text}"))
            }
        })?;
        let operations = operations(decoded.value)?;
        let mut complaints: Vec<_> = decoded.complaints;
        for (index, operation) in operations.iter().enumerate() {
            let unknown = operation.keys().filter(|name| !["op", "path", "from", "value"].contains(&name.as_str()));
            complaints
                .extend(unknown.map(|name| format!("unknown field {}", go_text::quote(&format!("[{index}].{name}")))));
        }
        let complaints = complaints.into_iter().map(|complaint| format!("json patch {complaint}")).collect();
        Ok(JsonPatch { operations, refuses_null: false, complaints })
    }

    /// A patch that an expression has made. Unlike in a patch from JSON, a test for null never holds.
    pub fn of(value: Value) -> Result<JsonPatch, PatchError> {
        Ok(JsonPatch {
            operations: operations(value)?,
            refuses_null: true,
            complaints: Vec::new(),
        })
    }

    /// Whether it has no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Applies every operation in turn; the first that does not apply ends it.
    pub fn apply(&self, value: &mut Value) -> Result<(), PatchError> {
        let mut spent = Spent::default();
        for operation in &self.operations {
            step(value, operation, &mut spent)?;
            if self.refuses_null
                && operation.get("op").is_some_and(|op| op == "test")
                && operation.get("value") == Some(&Value::Null)
            {
                let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
                return Err(PatchError::TestFailed(path.to_owned()));
            }
        }
        Ok(())
    }
}

/// What the operations so far have cost.
#[derive(Default)]
struct Spent {
    copied: usize,
    moved: usize,
}

impl Spent {
    /// Accounts for values that are looked at or change their places.
    fn moved(&mut self, count: usize) -> Result<(), String> {
        self.moved = self.moved.saturating_add(count);
        if self.moved > MOST_MOVED {
            Err(format!("the patch moves more than {MOST_MOVED} values"))
        } else {
            Ok(())
        }
    }
}

fn operations(patch: Value) -> Result<Vec<Map<String, Value>>, PatchError> {
    let operations = match patch {
        Value::Array(items) => items.into_iter().map(operation).collect::<Result<Vec<_>, _>>()?,
        Value::Null => Vec::new(),
        other => return Err(unfit(&other, "value", "[]handlers.jsonPatchOp")),
    };
    match operations.len() > MOST_OPERATIONS {
        true => Err(PatchError::TooManyOperations(operations.len())),
        false => Ok(operations),
    }
}

fn operation(item: Value) -> Result<Map<String, Value>, PatchError> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => return Err(unfit(&other, "value", "handlers.jsonPatchOp")),
    };
    for name in ["op", "path", "from"] {
        match fields.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => return Err(unfit(other, &format!("struct field jsonPatchOp.{name}"), "string")),
        }
    }
    Ok(fields)
}

fn unfit(value: &Value, place: &str, target: &str) -> PatchError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    PatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {kind} into Go {place} of type {target}"
    ))
}

const MISSING: &str = "missing value";

fn step(root: &mut Value, operation: &Map<String, Value>, spent: &mut Spent) -> Result<(), PatchError> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let from = || text("from").ok_or(format!("operation, missing from field: {MISSING}"));
    let path = || text("path").ok_or(format!("operation missing path field: {MISSING}"));
    match text("op").unwrap_or("unknown") {
        "add" => add(
            root,
            path().map_err(|_| format!("add operation failed to decode path: {MISSING}"))?,
            value(),
            spent,
        )?,
        "remove" => remove(
            root,
            path().map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?,
            spent,
        )?,
        "replace" => replace(
            root,
            path().map_err(|error| format!("replace operation failed to decode path: {error}"))?,
            value(),
            spent,
        )?,
        "move" => {
            let from = from().map_err(|error| format!("move operation failed to decode from: {error}"))?;
            let value = take(root, from, spent)?;
            let path = path().map_err(|error| format!("move operation failed to decode path: {error}"))?;
            move_to(root, path, value, spent)?;
        }
        "copy" => {
            let from = from().map_err(|error| format!("copy operation failed to decode from: {error}"))?;
            let path = path().map_err(|_| format!("copy operation failed to decode path: {MISSING}"));
            copy(root, from, path, spent)?;
        }
        "test" => {
            let path = path().map_err(|error| format!("test operation failed to decode path: {error}"))?;
            test(root, path, &value())?;
        }
        other => return Err(format!("Unexpected kind: {other}").into()),
    }
    Ok(())
}

/// What is put inside of what was put there would nest without end.
fn check_depth(path: &str, value: &Value, spent: &mut Spent) -> Result<(), String> {
    let outside = path.split('/').count();
    let (size, depth) = extent(value);
    spent.moved(size)?;
    if depth > MAX_DEPTH.saturating_sub(outside) {
        Err("exceeded max depth".to_owned())
    } else {
        Ok(())
    }
}

/// How many values there are in a value, and how deep they lie in each other.
fn extent(value: &Value) -> (usize, usize) {
    let add = |(size, depth): (usize, usize), inner: &Value| {
        let (more, deeper) = extent(inner);
        (size + more, depth.max(deeper + 1))
    };
    match value {
        Value::Array(items) => items.iter().fold((1, 1), add),
        Value::Object(fields) => fields.values().fold((1, 1), add),
        _ => (1, 0),
    }
}

fn add(root: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), String> {
    let (container, key) = Container::find(root, path)
        .ok_or_else(|| format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}"))?;
    check_depth(path, &value, spent)?;
    spent.moved(container.behind(&key))?;
    container
        .add(&key, value)
        .map_err(|error| format!("error in add for path: '{path}': {error}"))
}

fn remove(root: &mut Value, path: &str, spent: &mut Spent) -> Result<(), String> {
    let (container, key) = Container::find(root, path)
        .ok_or_else(|| format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"))?;
    spent.moved(container.behind(&key))?;
    container
        .remove(&key)
        .map_err(|error| format!("error in remove for path: '{path}': {error}"))?;
    Ok(())
}

fn replace(root: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            // Go wraps an error that is not there.
            return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
        }
        *root = value;
        return Ok(());
    }
    let (container, key) = Container::find(root, path)
        .ok_or_else(|| format!("replace operation does not apply: doc is missing path: {path}: {MISSING}"))?;
    check_depth(path, &value, spent)?;
    let missing = |_| format!("replace operation does not apply: doc is missing key: {path}: {MISSING}");
    container.set(&key, value).map_err(missing)
}

fn take(root: &mut Value, from: &str, spent: &mut Spent) -> Result<Value, String> {
    let (container, key) = Container::find(root, from)
        .ok_or_else(|| format!("move operation does not apply: doc is missing from path: {from}: {MISSING}"))?;
    spent.moved(container.behind(&key))?;
    container
        .remove(&key)
        .map_err(|error| format!("error in move for path: '{key}': {error}"))
}

fn move_to(root: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), String> {
    let (container, key) = Container::find(root, path)
        .ok_or_else(|| format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}"))?;
    check_depth(path, &value, spent)?;
    spent.moved(container.behind(&key))?;
    container
        .add(&key, value)
        .map_err(|error| format!("error in move for path: '{path}': {error}"))
}

fn copy(root: &mut Value, from: &str, path: Result<&str, String>, spent: &mut Spent) -> Result<(), String> {
    let (container, key) = Container::find(root, from)
        .ok_or_else(|| format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}"))?;
    let value = container
        .get(&key)
        .map_err(|error| format!("error in copy for from: '{from}': {error}"))?;
    let path = path?;
    check_depth(path, value.unwrap_or(&Value::Null), spent)?;
    let value = value.cloned().unwrap_or_default();
    let (container, key) = Container::find(root, path)
        .ok_or_else(|| format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}"))?;
    if !value.is_null() {
        spent.copied += go_text::json(&value).len();
    }
    if spent.copied > MOST_COPIED_BYTES {
        let rule = "Unable to complete the copy, the accumulated size increase of copy is";
        return Err(format!("{rule} {}, exceeding the limit {MOST_COPIED_BYTES}", spent.copied));
    }
    spent.moved(container.behind(&key))?;
    container
        .add(&key, value)
        .map_err(|error| format!("error while adding value during copy: {error}"))
}

fn test(root: &mut Value, path: &str, expected: &Value) -> Result<(), PatchError> {
    let failed = PatchError::TestFailed(path.to_owned());
    if path.is_empty() {
        return if root == expected { Ok(()) } else { Err(failed) };
    }
    let (container, key) = Container::find(root, path)
        .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: {MISSING}"))?;
    let value = container
        .get(&key)
        .map_err(|error| format!("error in test for path: '{path}': {error}"))?;
    // What is not there equals null, and what is given without a value is null.
    if value.unwrap_or(&Value::Null) == expected {
        Ok(())
    } else {
        Err(failed)
    }
}
