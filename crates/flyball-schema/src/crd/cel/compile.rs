//! Compiles the rules of one schema.
// apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go, Compile

use super::declaration::Declaration;
use super::{KEYWORD, cost, field_path};
use crate::crd::props::Props;
use crate::violation::Reason;
use flyball_cel::{CompileError, Env, Program, Type};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The name of the value that a rule is about.
pub(super) const SELF: &str = "self";
/// The name of the value that was there before.
pub(super) const OLD_SELF: &str = "oldSelf";

/// One rule as it is written, and what became of it.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) message: String,
    pub(super) message_expression: String,
    pub(super) reason: Reason,
    /// The field below that a refusal names.
    pub(super) field_path: Option<String>,
    pub(super) optional_old_self: Option<bool>,
    /// None if the rule is empty.
    pub(super) compiled: Option<Result<Compiled, String>>,
}

/// A rule that can be run.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) program: Program,
    /// Whether it compares with the value that was there before.
    pub(super) uses_old_self: bool,
    /// What one evaluation costs at most.
    pub(super) max_cost: u64,
    pub(super) message: Option<Result<Message, String>>,
}

/// A `messageExpression` that can be run.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) program: Program,
    pub(super) max_cost: u64,
}

/// The rules of a schema, without those below it.
pub(super) fn rules(props: Props<'_>, declaration: &Declaration) -> Vec<Rule> {
    let written = props.list(KEYWORD);
    if written.is_empty() {
        return Vec::new();
    }
    let (env, kind) = declaration.declare_in(Env::kubernetes(), &type_name(written));
    let env = env.variable(SELF, kind.clone());
    let optional = env.clone().variable(OLD_SELF, Type::optional(kind.clone()));
    let plain = env.variable(OLD_SELF, kind);
    let read = |written: &Value| {
        let mut rule = Rule::read(written, props);
        let env = match rule.optional_old_self {
            Some(true) => &optional,
            _ => &plain,
        };
        rule.compiled = compile(&rule, env, declaration);
        rule
    };
    written.iter().map(read).collect()
}

/// A name for the type of `self` that no rule can contain: it depends on the rules.
fn type_name(rules: &[Value]) -> String {
    let mut hasher = DefaultHasher::new();
    for rule in rules {
        rule.to_string().hash(&mut hasher);
    }
    format!("selfType{}", hasher.finish() % 1_000_000_000)
}

impl Rule {
    fn read(written: &Value, schema: Props<'_>) -> Rule {
        let text = |field: &str| written[field].as_str().unwrap_or_default().to_owned();
        let path = text("fieldPath");
        Rule {
            text: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: match written["reason"].as_str() {
                Some("FieldValueForbidden") => Reason::Forbidden,
                Some("FieldValueRequired") => Reason::Required,
                Some("FieldValueDuplicate") => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path: field_path::normalize(&path, schema).filter(|path| !path.is_empty()),
            optional_old_self: written["optionalOldSelf"].as_bool(),
            compiled: None,
        }
    }

    /// What an error calls the rule.
    pub(super) fn name(&self) -> &str {
        if self.message.is_empty() {
            self.text.trim()
        } else {
            self.message.trim()
        }
    }

    /// What a refusal says if no expression says it.
    pub(super) fn default_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.name())
        } else {
            self.name().to_owned()
        }
    }
}

fn compile(rule: &Rule, env: &Env, declaration: &Declaration) -> Option<Result<Compiled, String>> {
    if rule.text.trim().is_empty() {
        return None;
    }
    let program = match env.compile(&rule.text) {
        Ok(program) => program,
        Err(CompileError::Invalid(issues)) => return Some(Err(format!("compilation failed: {issues}"))),
        Err(CompileError::Program(error)) => return Some(Err(format!("program instantiation failed: {error}"))),
    };
    if *program.result_type() != Type::Bool {
        return Some(Err("cel expression must evaluate to a bool".to_owned()));
    }
    let message = (!rule.message_expression.is_empty()).then(|| message(rule, env, declaration));
    Some(Ok(Compiled {
        uses_old_self: program.checked().refers_to(OLD_SELF),
        max_cost: cost::estimate(&program, env, declaration),
        program,
        message,
    }))
}

fn message(rule: &Rule, env: &Env, declaration: &Declaration) -> Result<Message, String> {
    let program = env.compile(&rule.message_expression).map_err(|error| match error {
        CompileError::Invalid(issues) => format!("messageExpression compilation failed: {issues}"),
        CompileError::Program(error) => format!("messageExpression instantiation failed: {error}"),
    })?;
    if *program.result_type() != Type::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    let max_cost = cost::estimate(&program, env, declaration);
    Ok(Message { program, max_cost })
}
