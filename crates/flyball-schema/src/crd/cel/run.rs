//! Runs the rules of a schema on an object, within a budget.
// apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, Validate

use super::compile::{Compiled, Message, OLD_SELF, Rule, SELF};
use super::correlation::{Correlation, KeyedItems, Ratchet};
use super::cost::{MAX_CALL_COST, MAX_OBJECT_COST};
use super::validator::{Node, Validator};
use crate::go_text;
use crate::place::Place;
use crate::violation::{Reason, Violation};
use flyball_cel::{Activation, ErrorKind, EvalError, Value as Cel};
use serde_json::Value;

/// The longest message that an expression may make, in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What the rules have against an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Why it is refused.
    pub violations: Vec<Violation>,
    /// What would be refused if it had not been so before.
    pub warnings: Vec<String>,
}

/// No further rules are run.
struct Stopped;

impl Validator {
    /// What the rules have against an object that is written; without an old one it is created. What has not changed is let
    /// be, with a warning.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Findings {
        let correlation = old.map(|old| Correlation::new(&self.spine, object, old));
        let mut run = Run::new("", MAX_OBJECT_COST);
        let ratchet = Ratchet::root(correlation.as_ref());
        // Whether rules were left out is said in the violations.
        run.value(&self.root, &Place::root(), object, old, ratchet).ok();
        run.findings
    }

    /// What the rules have against a default, which takes the place of itself or of nothing, and what is left of the budget.
    // defaulting/validation.go, validate
    pub(in crate::crd) fn validate_default(&self, path: &str, default: &Value, budget: i64) -> (Vec<Violation>, i64) {
        let validate = |old: Option<&Value>| {
            let mut run = Run::new(path, budget);
            let stopped = run.value(&self.root, &Place::root(), default, old, Ratchet::default()).is_err();
            (run.findings.violations, if stopped { -1 } else { run.budget })
        };
        let (violations, left) = validate(Some(default));
        if !violations.is_empty() {
            return (violations, left);
        }
        let (violations, left_without_old) = validate(None);
        (violations, left.min(left_without_old))
    }
}

struct Run<'b> {
    /// What paths begin with.
    base: &'b str,
    budget: i64,
    findings: Findings,
}

/// The values that a rule sees.
struct Variables<'a> {
    value: Result<Cel<'a>, EvalError>,
    old: Option<Result<Cel<'a>, EvalError>>,
}

impl<'a> Activation<'a> for Variables<'a> {
    fn resolve(&self, name: &str) -> Option<Result<Cel<'a>, EvalError>> {
        match name {
            SELF => Some(self.value.clone()),
            OLD_SELF => self.old.clone(),
            _ => None,
        }
    }
}

impl<'b> Run<'b> {
    fn new(base: &'b str, budget: i64) -> Run<'b> {
        Run { base, budget, findings: Findings::default() }
    }

    fn value(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        value: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_, '_>,
    ) -> Result<(), Stopped> {
        if value.is_null() {
            return Ok(());
        }
        self.rules(node, place, value, old.filter(|old| !old.is_null()), ratchet)?;
        match value {
            Value::Array(items) => {
                let Some(node_of_items) = &node.items else {
                    return Ok(());
                };
                let old = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let old = KeyedItems::of(old, &node.keys);
                for (index, item) in items.iter().enumerate() {
                    let correlation = ratchet.index(index);
                    let ratchet = ratchet.at_index(correlation.as_ref());
                    self.value(node_of_items, &place.index(index), item, old.get(item), ratchet)?;
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let (node, place) = match (&node.values, node.properties.get(name.as_str())) {
                        (Some(values), _) => (&**values, place.key(name)),
                        (None, Some(property)) => (property, place.field(name)),
                        (None, None) => continue,
                    };
                    let correlation = ratchet.key(name);
                    let ratchet = ratchet.at_key(name, correlation.as_ref());
                    self.value(node, &place, field, old.and_then(|old| old.get(name)), ratchet)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Runs the rules of one value.
    fn rules(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        value: &Value,
        old: Option<&Value>,
        ratchet: Ratchet<'_, '_>,
    ) -> Result<(), Stopped> {
        if node.rules.is_empty() {
            return Ok(());
        }
        let at = At { node, path: self.path(place), value, ratchet };
        if self.budget <= 0 {
            return self.stop(&at, OUT_OF_BUDGET);
        }
        let plain = Variables {
            value: Cel::shaped(value, &node.shape),
            old: old.filter(|_| node.uses_old_self).map(|old| Cel::shaped(old, &node.shape)),
        };
        let optional_old = match &plain.old {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(old)) => Ok(Cel::some(old.clone())),
            None => Ok(Cel::Optional(None)),
        };
        let optional = Variables { value: plain.value.clone(), old: Some(optional_old) };
        for rule in &node.rules {
            let compiled = match &rule.compiled {
                Some(Ok(compiled)) => compiled,
                Some(Err(error)) => {
                    self.refuse(&at, &format!("rule compile error: {error}"));
                    continue;
                }
                None => continue,
            };
            let is_optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !is_optional {
                continue;
            }
            let variables = if is_optional { &optional } else { &plain };
            if !self.holds(&at, rule, compiled, variables)? {
                self.fail(&at, rule, compiled, &plain)?;
            }
        }
        Ok(())
    }

    /// Whether a rule holds; an error is reported here, and counts as if it did.
    fn holds<'a>(
        &mut self,
        at: &At<'_, '_>,
        rule: &'a Rule,
        compiled: &'a Compiled,
        variables: &Variables<'a>,
    ) -> Result<bool, Stopped> {
        let evaluation = compiled.program.evaluate_within(variables, MAX_CALL_COST);
        self.pay(evaluation.cost)
            .map_err(|Stopped| self.stop(at, OUT_OF_BUDGET).err().unwrap_or(Stopped))?;
        match evaluation.result {
            Ok(value) => return Ok(matches!(value, Cel::Bool(true))),
            Err(error) if error.message().starts_with("no such overload") => {
                let why = "call arguments did not match a supported operator, function or macro signature for rule";
                self.refuse(at, &format!("'{error}': {why}: {}", rule.name()));
            }
            Err(error) if error.kind() == ErrorKind::CostLimit => {
                let why = "no further validation rules will be run due to call cost exceeds limit for rule";
                self.stop(at, &format!("'{error}': {why}: {}", rule.name()))?;
            }
            Err(error) => self.refuse(at, &format!("{error} evaluating rule: {}", rule.name())),
        }
        Ok(true)
    }

    fn pay(&mut self, cost: u64) -> Result<(), Stopped> {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                Ok(())
            }
            _ => Err(Stopped),
        }
    }

    /// Reports a rule that does not hold.
    fn fail<'a>(
        &mut self,
        at: &At<'_, '_>,
        rule: &'a Rule,
        compiled: &'a Compiled,
        variables: &Variables<'a>,
    ) -> Result<(), Stopped> {
        let path = match &rule.field_path {
            Some(below) if at.path == ROOT => below.clone(),
            Some(below) => format!("{}.{below}", at.path),
            None => at.path.clone(),
        };
        let made = match &compiled.message {
            Some(Ok(message)) => self.message(rule, message, variables),
            _ => Ok(None),
        };
        let ratchets = !compiled.uses_old_self && at.ratchet.is_unchanged();
        let (violation, outcome) = match made {
            Ok(detail) => {
                let detail = detail.unwrap_or_else(|| rule.default_message());
                (at.violation(path, rule.reason, &detail), Ok(()))
            }
            Err(why) => (Violation::invalid(path, &*at.node.kind, &why), Err(Stopped)),
        };
        match ratchets {
            true => self.findings.warnings.push(violation.to_string()),
            false => self.findings.violations.push(violation),
        }
        outcome
    }

    /// What an expression says of a failed rule, if it says anything that can be shown. An error ends the run.
    fn message<'a>(
        &mut self,
        rule: &Rule,
        message: &'a Message,
        variables: &Variables<'a>,
    ) -> Result<Option<String>, String> {
        let evaluation = message.program.evaluate_within(variables, MAX_CALL_COST);
        if self.pay(evaluation.cost).is_err() {
            let why = "messageExpression evaluation failed due to running out of cost budget, no further validation \
                       rules will be run";
            return Err(why.to_owned());
        }
        let text = match evaluation.result {
            Ok(value) => value.as_str().map(|text| text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::CostLimit => {
                let why =
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression";
                return Err(format!("{why}: {}", go_text::quote(&rule.message_expression)));
            }
            Err(_) => None,
        };
        Ok(text.filter(|text| !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n')))
    }

    fn refuse(&mut self, at: &At<'_, '_>, why: &str) {
        self.findings.violations.push(Violation::invalid(&at.path, &*at.node.kind, why));
    }

    fn stop(&mut self, at: &At<'_, '_>, why: &str) -> Result<(), Stopped> {
        self.refuse(at, why);
        Err(Stopped)
    }

    fn path(&self, place: &Place<'_>) -> String {
        let path = place.subscripted();
        match (self.base, path.as_str()) {
            ("", "") => ROOT.to_owned(),
            ("", _) => path,
            (base, "") => base.to_owned(),
            (base, below) if below.starts_with('[') => format!("{base}{below}"),
            (base, below) => format!("{base}.{below}"),
        }
    }
}

/// How Go writes a path without elements.
const ROOT: &str = "<nil>";

/// Where rules are run.
struct At<'a, 'r> {
    node: &'a Node,
    path: String,
    value: &'a Value,
    ratchet: Ratchet<'a, 'r>,
}

impl At<'_, '_> {
    // fieldErrorForReason
    fn violation(&self, path: String, reason: Reason, detail: &str) -> Violation {
        let is_shown = !matches!(&*self.node.kind, "object" | "array");
        match reason {
            Reason::Duplicate if is_shown => Violation::duplicate(path, self.value.clone()),
            Reason::Duplicate => Violation::plain(path, reason, ""),
            Reason::Invalid if is_shown => Violation::with_value(path, reason, self.value, detail),
            _ => Violation::plain(path, reason, detail),
        }
    }
}
