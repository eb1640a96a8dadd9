//! Runs one test: parse, check, evaluate, and compare.

use std::panic::{self, AssertUnwindSafe};

use flyball_cel::{Bindings, CompileError, Env, Program, Type, Value};

use super::Outcome;
use super::expected::{Expected, MESSAGES, type_of, value_of};
use crate::cel::canonical::canonical;
use crate::cel::textproto::Message;

/// Parts of an expression that only messages, enums or extensions of protocol buffers need.
const OF_MESSAGES: [&str; 5] = [
    "TestAllTypes",
    "NestedTestAllTypes",
    "GlobalEnum",
    "NestedEnum",
    "proto.",
];

/// Well-known messages that the engine does not know, or does not make.
const UNKNOWN: [&str; 2] = ["google.protobuf.Any", "google.protobuf.FieldMask"];

/// An error instead of a value.
const ERROR: &str = "error";

/// Tests that cel-go does not pass, and what cel-go makes of them: Kubernetes does what cel-go does.
const CEL_GO: [(&str, &str); 10] = [
    ("fields/qualified_identifier_resolution/map_key_float", r#"{"int": "5"}"#),
    ("fields/qualified_identifier_resolution/map_value_repeat_key", r#"{"int": "3"}"#),
    (
        "fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous",
        r#"{"int": "1"}"#,
    ),
    ("fields/map_fields/map_bad_key_type_or_true", ERROR),
    ("fields/map_fields/map_bad_key_type_and_false", ERROR),
    ("string_ext/value_errors/indexof_out_of_range", "true"),
    ("string_ext/value_errors/lastindexof_out_of_range", "true"),
    ("optionals/optionals/map_null_entry_no_such_key", "false"),
    ("optionals/optionals/map_present_key_invalid_field", "false"),
    (
        "type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate",
        r#"{"optional": [{"int": "1"}]}"#,
    ),
];

/// What becomes of a test.
pub fn outcome(name: &str, test: &Message) -> Outcome {
    let mut prepared = match prepared(test) {
        Ok(prepared) => prepared,
        Err(reason) => return Outcome::OutOfScope(reason),
    };
    let departure = CEL_GO.iter().find(|(departing, _)| *departing == name);
    if let Some((_, expected)) = departure {
        let value = serde_json::from_str(expected).map(|value| Expected::Value(value, None));
        prepared.expected = value.unwrap_or(Expected::Error);
        prepared.check_only = false;
        return if prepared.judge() == Outcome::Passed {
            Outcome::AsCelGo
        } else {
            prepared.judge()
        };
    }
    let judged = panic::catch_unwind(AssertUnwindSafe(|| prepared.judge()));
    judged.unwrap_or_else(|_| Outcome::Failed(format!("`{}` panics", prepared.text)))
}

struct Prepared {
    text: String,
    env: Env,
    bindings: Vec<(String, Value<'static>)>,
    expected: Expected,
    unchecked: bool,
    check_only: bool,
}

fn prepared(test: &Message) -> Result<Prepared, &'static str> {
    let text = test.text("expr");
    let container = test.text("container");
    if OF_MESSAGES
        .iter()
        .any(|part| text.contains(part) || container.contains("conformance.proto"))
        || UNKNOWN.iter().any(|name| text.contains(name))
    {
        return Err(MESSAGES);
    }
    if test.is_set("disable_macros") {
        return Err("macros that are switched off");
    }
    if ["cel.block(", "cel.iterVar("].iter().any(|name| text.contains(name)) {
        return Err("cel.block, which only optimisers write");
    }
    let mut env = super::super::language().container(&container);
    for declared in test.messages("type_env") {
        let Some(ident) = declared.message("ident") else {
            return Err("functions of the test's own");
        };
        let kind = ident.message("type").map_or(Ok(Type::Dyn), type_of)?;
        env = env.variable(&declared.text("name"), kind);
    }
    let mut bindings = Vec::new();
    for binding in test.messages("bindings") {
        let value = binding.message("value").and_then(|value| value.message("value"));
        bindings.push((binding.text("key"), value.ok_or("unknown values").and_then(value_of)?));
    }
    Ok(Prepared {
        expected: Expected::of(test)?,
        unchecked: test.is_set("disable_check"),
        check_only: test.is_set("check_only"),
        text,
        env,
        bindings,
    })
}

impl Prepared {
    fn judge(&self) -> Outcome {
        let compiled = self.env.compile(&self.text);
        match (&self.expected, compiled) {
            (Expected::Error, Err(_)) => Outcome::Passed,
            (_, Err(CompileError::Invalid(_))) if self.unchecked => {
                Outcome::OutOfScope("evaluation of what does not pass the type check")
            }
            (_, Err(error)) => Outcome::Failed(format!("`{}` does not compile: {error}", self.text)),
            (Expected::Type(expected), Ok(program)) => self.same_type(expected, &program),
            (Expected::Value(_, Some(kind)), Ok(program)) if self.check_only => self.same_type(kind, &program),
            (Expected::Value(value, kind), Ok(program)) => {
                let typed = kind.as_ref().map_or(Outcome::Passed, |kind| self.same_type(kind, &program));
                if typed == Outcome::Passed {
                    self.same_value(value, &program)
                } else {
                    typed
                }
            }
            (Expected::Error, Ok(program)) => match self.evaluated(&program) {
                Err(_) => Outcome::Passed,
                Ok(value) => Outcome::Failed(format!("`{}` is {value}, expected an error", self.text)),
            },
        }
    }

    fn same_type(&self, expected: &str, program: &Program) -> Outcome {
        let found = program.result_type().to_string();
        if found == *expected {
            return Outcome::Passed;
        }
        Outcome::Failed(format!("`{}` has the type {found}, expected {expected}", self.text))
    }

    fn same_value(&self, expected: &serde_json::Value, program: &Program) -> Outcome {
        match self.evaluated(program) {
            Ok(found) if found == *expected => Outcome::Passed,
            Ok(found) => Outcome::Failed(format!("`{}` is {found}, expected {expected}", self.text)),
            Err(error) => Outcome::Failed(format!("`{}` fails: {error}, expected {expected}", self.text)),
        }
    }

    fn evaluated(&self, program: &Program) -> Result<serde_json::Value, String> {
        let mut bindings = Bindings::new();
        for (name, value) in &self.bindings {
            bindings = bindings.bind(name, value.clone());
        }
        let value = program.evaluate(&bindings).map_err(|error| error.to_string())?;
        canonical(&value).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::textproto;

    fn of(test: &str) -> Outcome {
        outcome("file/section/test", &textproto::parse(test).unwrap())
    }

    #[test]
    fn values_types_and_errors_are_compared() {
        assert_eq!(of("expr: '1 + 1' value: { int64_value: 2 }"), Outcome::Passed);
        assert_eq!(of("expr: '1 / 0' eval_error: { errors: { message: 'any' } }"), Outcome::Passed);
        assert_eq!(of("expr: 'true'"), Outcome::Passed);
        let typed = "expr: '[1]' check_only: true typed_result: { deduced_type: { list_type: { elem_type: { primitive: INT64 } } } }";
        assert_eq!(of(typed), Outcome::Passed);
        let variable = "expr: 'x' type_env: { name: 'x' ident: { type: { primitive: STRING } } } \
                        bindings: { key: 'x' value: { value: { string_value: 'a' } } } value: { string_value: 'a' }";
        assert_eq!(of(variable), Outcome::Passed);
    }

    #[test]
    fn a_wrong_value_type_or_success_fails() {
        let failed = |test| match of(test) {
            Outcome::Failed(how) => how,
            other => panic!("{other:?}"),
        };
        let wrong = failed("expr: '1 + 1' value: { uint64_value: 2 }");
        assert_eq!(wrong, r#"`1 + 1` is {"int":"2"}, expected {"uint":"2"}"#);
        assert!(failed("expr: '1' eval_error: {}").ends_with("expected an error"));
        assert!(failed("expr: '1 +' value: { int64_value: 1 }").contains("does not compile"));
    }

    #[test]
    fn messages_are_out_of_scope() {
        let object = "expr: 'TestAllTypes{}' container: 'cel.expr.conformance.proto3' value: { object_value: {} }";
        assert_eq!(of(object), Outcome::OutOfScope(MESSAGES));
        assert_eq!(
            of("expr: 'google.protobuf.Any{}' value: { null_value: NULL_VALUE }"),
            Outcome::OutOfScope(MESSAGES)
        );
    }
}
