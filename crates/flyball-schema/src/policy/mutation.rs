//! Expressions of mutations: the types that they make, and the patch that their value is.
// apiserver/pkg/cel/mutation, apiserver/pkg/admission/plugin/policy/mutating/patch

use super::{Compiler, Expression};
use crate::go_text;
use flyball_cel::{Env, Library, Type, Value as Cel};
use serde_json::{Map, Value, json};

const OBJECT: &str = "Object";
const JSON_PATCH: &str = "JSONPatch";

/// What kind of patch a mutation's expression makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// One `Object{…}` with the fields to set, which is merged as server-side apply does it.
    ApplyConfiguration,
    /// A list of `JSONPatch{op: …, path: …, from: …, value: …}`.
    JsonPatch,
}

impl Compiler {
    /// Compiles the expression of a mutation. Only these expressions know `Object`, `JSONPatch` and `jsonpatch.escapeKey`. As
    /// upstream, the fields of `Object{…}` and of the types below it, as in `Object.spec{…}`, are not checked against a schema.
    ///
    /// ```
    /// use flyball_schema::policy::{Compiler, Evaluator, Input, MAX_POLICY_COST, PatchType};
    /// use serde_json::json;
    ///
    /// let compiler = Compiler::new();
    /// let text = "[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]";
    /// let mutation = compiler.compile_patch(text, PatchType::JsonPatch).expect("a valid mutation");
    ///
    /// let (object, request) = (json!({"spec": {"replicas": 3}}), json!({"operation": "CREATE"}));
    /// let mut evaluator = Evaluator::new(&compiler, Input::new(&object, &request), MAX_POLICY_COST);
    /// let value = evaluator.evaluate(&mutation).expect("within budget").expect("a patch");
    /// let patch = PatchType::JsonPatch.patch(&value).expect("JSON");
    /// assert_eq!(patch, json!([{"op": "replace", "path": "/spec/replicas", "value": 4}]));
    /// ```
    ///
    /// # Errors
    /// Why it is refused, in kube-apiserver's words.
    pub fn compile_patch(&self, text: &str, patch_type: PatchType) -> Result<Expression, String> {
        self.compile_in(&declare(self.complete_env()), text, &[patch_type.result()])
    }
}

/// Adds the types of patches.
fn declare(env: Env) -> Env {
    let text = |name| (name, Type::String);
    env.library(Library::JsonPatch)
        .open_messages(OBJECT)
        .message(JSON_PATCH, [text("op"), text("path"), text("from"), ("value", Type::Dyn)])
}

impl PatchType {
    fn result(self) -> Type {
        match self {
            PatchType::ApplyConfiguration => Type::object(OBJECT),
            PatchType::JsonPatch => Type::list(Type::object(JSON_PATCH)),
        }
    }

    /// The value of an expression as a patch in JSON: an object to apply, without `apiVersion` and `kind`, or a list of
    /// operations.
    ///
    /// # Errors
    /// What cannot be patched with, in kube-apiserver's words.
    pub fn patch(self, value: &Cel<'_>) -> Result<Value, String> {
        match (self, value) {
            (PatchType::ApplyConfiguration, Cel::Message(_)) => {
                check_type_names(value)?;
                value.to_protobuf_json().map_err(|error| format!("invalid return type: {error}"))
            }
            (PatchType::ApplyConfiguration, other) => {
                let found = other.type_of();
                Err(format!("unsupported return type from ApplyConfiguration expression: {found}"))
            }
            (PatchType::JsonPatch, Cel::List(list)) => {
                let operations = list.iter().map(|item| operation(&item.map_err(|error| error.to_string())?));
                operations.collect::<Result<Vec<Value>, String>>().map(Value::Array)
            }
            (PatchType::JsonPatch, _) => {
                Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned())
            }
        }
    }
}

fn operation(item: &Cel<'_>) -> Result<Value, String> {
    let Cel::Message(message) = item else {
        let found = item.type_of();
        return Err(format!(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {found}"
        ));
    };
    let text = |field: &str| message.get(field).and_then(Cel::as_str).unwrap_or_default();
    let mut operation = Map::new();
    operation.insert("op".into(), json!(text("op")));
    operation.insert("path".into(), json!(text("path")));
    if !text("from").is_empty() {
        operation.insert("from".into(), json!(text("from")));
    }
    if let Some(value) = message.get("value") {
        check_type_names(value)?;
        let value = value.to_protobuf_json().map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })?;
        operation.insert("value".into(), value);
    }
    Ok(Value::Object(operation))
}

/// Refuses objects whose type is not named after the path of the field that holds them.
fn check_type_names(value: &Cel<'_>) -> Result<(), String> {
    let Cel::Message(message) = value else { return Ok(()) };
    let mut mismatches = Vec::new();
    collect_mismatches(value, message.type_name(), &mut mismatches);
    if mismatches.is_empty() {
        Ok(())
    } else {
        Err(format!("type mismatch: {}", mismatches.join("\n")))
    }
}

fn collect_mismatches(value: &Cel<'_>, path: &str, mismatches: &mut Vec<String>) {
    match value {
        Cel::Message(message) => {
            if message.type_name() != path {
                let (found, expected) = (go_text::quote(message.type_name()), go_text::quote(path));
                mismatches.push(format!(
                    "unexpected type name {found}, expected {expected}, which matches field name path from root Object type"
                ));
            }
            for (name, value) in message.fields() {
                collect_mismatches(value, &format!("{path}.{name}"), mismatches);
            }
        }
        Cel::List(list) => list.iter().flatten().for_each(|item| collect_mismatches(&item, path, mismatches)),
        Cel::Map(map) => {
            map.entries()
                .flatten()
                .for_each(|(_, value)| collect_mismatches(&value, path, mismatches));
        }
        _ => {}
    }
}
