//! The keywords of a schema, one value at a time: which apply, in which order, and how alternatives are judged.
// kube-openapi/pkg/validation/validate/{schema,schema_props,type,object_validator,slice_validator}.go

use super::old::Old;
use super::{format, number};
use crate::go_text;
use crate::place::Place;
use crate::schema::{Field, Form, Node, Rules};
use crate::violation::{Reason, Violation};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// What is wrong with a value; paths begin with `base`.
pub(super) fn check(node: Node<'_>, value: &Value, old: Option<Old<'_>>, base: &str) -> Vec<Violation> {
    let checks = Checks { base, allowed: RefCell::default() };
    let outcome = checks.value(node, value, &Place::root(), old);
    outcome.findings.into_iter().map(|finding| finding.violation).collect()
}

/// What was found out about a value, and how much of the schema it matched.
#[derive(Default)]
pub(super) struct Outcome {
    findings: Vec<Finding>,
    /// How long their sentences are together.
    bytes: usize,
    matches: u64,
}

/// Whoever sends more mistakes is told of as many; a real server looks for each among all others.
const MOST_FINDINGS: usize = 1000;
const MOST_BYTES: usize = 4 << 20;

/// A violation and the sentence that tells it from others: none is reported twice.
struct Finding {
    sentence: String,
    violation: Violation,
}

impl Outcome {
    fn add(&mut self, sentence: String, violation: Violation) {
        if !self.is_full() && self.findings.iter().all(|finding| finding.sentence != sentence) {
            self.bytes += sentence.len();
            self.findings.push(Finding { sentence, violation });
        }
    }

    fn is_full(&self) -> bool {
        self.findings.len() >= MOST_FINDINGS || self.bytes >= MOST_BYTES
    }

    fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        for finding in other.findings {
            self.add(finding.sentence, finding.violation);
        }
    }

    fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }
}

pub(super) struct Checks<'a> {
    base: &'a str,
    /// Long lists of allowed values, by where they are.
    allowed: RefCell<HashMap<*const Value, HashSet<String>>>,
}

impl Checks<'_> {
    fn value(&self, node: Node<'_>, value: &Value, place: &Place<'_>, old: Option<Old<'_>>) -> Outcome {
        let mut outcome = self.keywords(node, value, place, old);
        if !outcome.is_valid() && old.is_some_and(|old| old.is_still(value)) {
            outcome.findings.clear();
            outcome.bytes = 0;
        }
        outcome
    }

    fn keywords(&self, node: Node<'_>, value: &Value, place: &Place<'_>, old: Option<Old<'_>>) -> Outcome {
        let mut outcome = Outcome::default();
        let typed = !types(node).is_empty() || node.format.is_some();
        if typed || value.is_null() {
            self.type_of(node, value, place, &mut outcome);
        }
        if value.is_null() {
            self.allowed(node, value, place, &mut outcome);
            return outcome;
        }
        outcome.matches += u64::from(typed);
        if let Some(rules) = &node.rules {
            self.alternatives(node, rules, value, place, &mut outcome);
        }
        // The alternatives count for one when they are judged, and every kind of check for one.
        outcome.matches += 3;
        match value {
            Value::String(text) => {
                self.text(node, text, place, &mut outcome);
                outcome.matches += 1 + u64::from(node.format.is_some());
            }
            Value::Number(number) => {
                number::check(node, number, place, self, &mut outcome);
                outcome.matches += 2;
            }
            Value::Array(items) => {
                self.items(node, items, place, old, &mut outcome);
                outcome.matches += 2;
            }
            _ => {}
        }
        self.allowed(node, value, place, &mut outcome);
        if let Value::Object(fields) = value {
            self.fields(node, fields, place, old, &mut outcome);
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn type_of(&self, node: Node<'_>, value: &Value, place: &Place<'_>, outcome: &mut Outcome) {
        let types = types(node);
        let (found, precise) = match value {
            Value::Null if types.is_empty() || node.nullable => ("", ""),
            Value::Null => ("null", ""),
            Value::Bool(_) => ("boolean", ""),
            Value::Number(number) if number.is_f64() => ("number", "float64"),
            Value::Number(_) => ("integer", "int64"),
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
        };
        let fits = match value {
            Value::Number(number) if types.contains(&"integer") && is_integral(number) => true,
            _ => types.contains(&found) || (found == "integer" && types.contains(&"number")),
        };
        let numeric = types.contains(&"number") || types.contains(&"integer");
        match node.format.as_deref() {
            _ if found.is_empty() => {}
            // A list passes for a string with a format: that is how a real server has it.
            Some(_) if !numeric && (value.is_string() || value.is_array()) => {}
            Some(format) if !value.is_string() && !value.is_array() && !value.is_null() && !fits => {
                return self.mistyped(format, precise, place, outcome);
            }
            _ if !fits => return self.mistyped(&types.join(","), found, place, outcome),
            _ => {}
        }
        outcome.matches += 1;
    }

    fn mistyped(&self, expected: &str, found: &str, place: &Place<'_>, outcome: &mut Outcome) {
        let detail = format!("must be of type {expected}: {}", go_text::quote(found));
        self.report(Reason::TypeInvalid, &found.into(), &detail, place, outcome);
    }

    /// Adds `path: Invalid value: value: path in body detail`.
    pub(super) fn report(&self, reason: Reason, value: &Value, detail: &str, place: &Place<'_>, outcome: &mut Outcome) {
        let sentence = format!("{} in body {detail}", place.dotted());
        let violation = Violation::with_value(self.path(place), reason, value, &sentence);
        outcome.add(sentence, violation);
    }

    /// Adds a sentence that real servers put at no path.
    pub(super) fn report_nowhere(&self, sentence: String, outcome: &mut Outcome) {
        let path = if self.base.is_empty() { "<nil>" } else { self.base };
        let violation = Violation::invalid(path, "", &sentence);
        outcome.add(sentence, violation);
    }

    /// Adds the complaint about a schema that asks for a multiple of zero or less.
    pub(super) fn report_factor(&self, factor: &Value, place: &Place<'_>, outcome: &mut Outcome) {
        let shown = go_text::shown(factor);
        let sentence = format!("factor MultipleOf declared for {} must be positive: {shown}", place.dotted());
        let violation = Violation::invalid(self.path(place), factor.clone(), &sentence);
        outcome.add(sentence, violation);
    }

    fn path(&self, place: &Place<'_>) -> String {
        match (self.base, place.dotted()) {
            ("", path) if path.is_empty() => "<nil>".to_owned(),
            ("", path) => path,
            (base, path) if path.is_empty() => base.to_owned(),
            (base, path) => format!("{base}.{path}"),
        }
    }

    fn text(&self, node: Node<'_>, text: &str, place: &Place<'_>, outcome: &mut Outcome) {
        if let Some(rules) = &node.rules {
            self.text_rules(rules, text, place, outcome);
        }
        if let Some(format) = node.format.as_deref().filter(|format| !format::matches(format, text)) {
            let detail = format!("must be of type {format}: {}", go_text::quote(text));
            self.report(Reason::TypeInvalid, &text.into(), &detail, place, outcome);
        }
    }

    /// Only the first of length and pattern that is violated is reported.
    fn text_rules(&self, rules: &Rules, text: &str, place: &Place<'_>, outcome: &mut Outcome) {
        let length = || text.chars().count() as u64;
        if let Some(most) = rules.max_length.filter(|most| length() > *most) {
            let sentence = format!("{} in body should be at most {most} chars long", place.dotted());
            outcome.add(sentence, Violation::too_long(self.path(place), most));
        } else if let Some(least) = rules.min_length.filter(|least| length() < *least) {
            let detail = format!("should be at least {least} chars long");
            self.report(Reason::Invalid, &text.into(), &detail, place, outcome);
        } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            let detail = format!("should match '{}'", pattern.as_str());
            self.report(Reason::Invalid, &text.into(), &detail, place, outcome);
        }
    }

    fn allowed(&self, node: Node<'_>, value: &Value, place: &Place<'_>, outcome: &mut Outcome) {
        if node.allowed.is_empty() || self.is_allowed(&node.allowed, value) {
            return;
        }
        let text = |value: &Value| value.as_str().map_or_else(|| go_text::json(value), str::to_owned);
        let values: Vec<_> = node.allowed.iter().map(text).collect();
        let sentence = format!("{} in body should be one of {values:?}", place.dotted());
        outcome.add(sentence, Violation::not_supported(self.path(place), value.clone(), &values));
    }

    /// Whether a value is listed; long lists are looked through once.
    fn is_allowed(&self, allowed: &[Value], value: &Value) -> bool {
        const LONG: usize = 32;
        if allowed.len() < LONG {
            return allowed.iter().any(|allowed| is_same(allowed, value));
        }
        let mut known = self.allowed.borrow_mut();
        let texts = known.entry(allowed.as_ptr()).or_insert_with(|| allowed.iter().map(comparable).collect());
        texts.contains(&comparable(value))
    }

    fn items(&self, node: Node<'_>, items: &[Value], place: &Place<'_>, old: Option<Old<'_>>, outcome: &mut Outcome) {
        if let Some(inner) = node.items() {
            let old = old.and_then(Old::items);
            for (index, item) in items.iter().enumerate() {
                let old = old.as_ref().and_then(|old| old.item(item));
                outcome.merge(self.value(inner, item, &place.index(index), old));
                if outcome.is_full() {
                    break;
                }
            }
        }
        let Some(rules) = &node.rules else { return };
        let count = items.len() as u64;
        if let Some(least) = rules.min_items.filter(|least| count < *least) {
            let detail = format!("should have at least {least} items");
            self.report(Reason::Invalid, &count.into(), &detail, place, outcome);
        }
        if let Some(most) = rules.max_items.filter(|most| count > *most) {
            let sentence = format!("{} in body should have at most {most} items", place.dotted());
            outcome.add(sentence, Violation::too_many(self.path(place), count, most));
        }
    }

    fn fields(
        &self,
        node: Node<'_>,
        fields: &Map<String, Value>,
        place: &Place<'_>,
        old: Option<Old<'_>>,
        outcome: &mut Outcome,
    ) {
        if let Some(rules) = &node.rules {
            self.count_fields(rules, fields.len() as u64, place, outcome);
            fields
                .keys()
                .filter(|_| rules.closed)
                .for_each(|name| self.forbidden(name, place, outcome));
        }
        if let Form::Map(map) = &node.form {
            for (name, field) in fields {
                let old = old.and_then(|old| old.field(name));
                outcome.merge(self.value(node.at(map.values), field, &place.key(name), old));
                if outcome.is_full() {
                    break;
                }
            }
        }
        for declared in node.fields().iter().filter(|field| is_checked(node, field)) {
            if let Some(field) = fields.get(&*declared.name) {
                let old = old.and_then(|old| old.field(&declared.name));
                outcome.merge(self.value(node.at(declared.schema), field, &place.field(&declared.name), old));
            }
        }
        for name in node
            .rules
            .iter()
            .flat_map(|rules| &rules.required)
            .filter(|name| !fields.contains_key(&***name))
        {
            let place = place.field(name);
            let sentence = format!("{} in body is required", place.dotted());
            outcome.add(sentence, Violation::required(self.path(&place), ""));
        }
    }

    fn forbidden(&self, name: &str, place: &Place<'_>, outcome: &mut Outcome) {
        let sentence = format!("{}.{name} in body is a forbidden property", place.dotted());
        let violation = Violation::invalid(self.path(place), name, &sentence);
        outcome.add(sentence, violation);
    }

    fn count_fields(&self, rules: &Rules, count: u64, place: &Place<'_>, outcome: &mut Outcome) {
        if let Some(least) = rules.min_properties.filter(|least| count < *least) {
            let detail = format!("should have at least {least} properties");
            self.report(Reason::Invalid, &count.into(), &detail, place, outcome);
        }
        if let Some(most) = rules.max_properties.filter(|most| count > *most) {
            let sentence = format!("{} in body should have at most {most} properties", place.dotted());
            outcome.add(sentence, Violation::too_many(self.path(place), count, most));
        }
    }

    fn alternatives(&self, node: Node<'_>, rules: &Rules, value: &Value, place: &Place<'_>, outcome: &mut Outcome) {
        // What was there before is no excuse inside of alternatives.
        let judge = |id| self.keywords(node.at(id), value, place, None);
        let quoted = || go_text::quote(&place.dotted());
        if !rules.any_of.is_empty() {
            let judged = Judged::first_valid(rules.any_of.iter().map(|id| judge(*id)));
            if judged.valid == 0 {
                self.report_nowhere(format!("{} must validate at least one schema (anyOf)", quoted()), outcome);
            }
            outcome.merge(judged.best);
        }
        if !rules.one_of.is_empty() {
            let judged = Judged::all(rules.one_of.iter().map(|id| judge(*id)));
            if judged.valid != 1 {
                let count = match judged.valid {
                    0 => "Found none valid".to_owned(),
                    several => format!("Found {several} valid alternatives"),
                };
                let rule = "must validate one and only one schema (oneOf).";
                self.report_nowhere(format!("{} {rule} {count}", quoted()), outcome);
            }
            // Of several that are valid none is merged.
            if judged.valid <= 1 {
                outcome.merge(judged.best);
            }
        }
        if !rules.all_of.is_empty() {
            let mut valid = 0;
            for id in &rules.all_of {
                let one = judge(*id);
                valid += usize::from(one.is_valid());
                outcome.merge(one);
            }
            if valid < rules.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.report_nowhere(format!("{} must validate all the schemas (allOf){none}", quoted()), outcome);
            }
        }
        if rules.not.is_some_and(|id| judge(id).is_valid()) {
            self.report_nowhere(format!("{} must not validate the schema (not)", quoted()), outcome);
        }
    }
}

/// How alternatives came out: how many hold, and the one to report.
struct Judged {
    valid: usize,
    /// The first that holds, else the one that matched most.
    best: Outcome,
}

impl Judged {
    fn first_valid(outcomes: impl Iterator<Item = Outcome>) -> Judged {
        let mut stop = false;
        Judged::all(outcomes.take_while(|outcome| !std::mem::replace(&mut stop, outcome.is_valid())))
    }

    fn all(outcomes: impl Iterator<Item = Outcome>) -> Judged {
        let mut judged: Option<Judged> = None;
        for outcome in outcomes {
            let valid = usize::from(outcome.is_valid());
            judged = Some(match judged {
                None => Judged { valid, best: outcome },
                Some(Judged { valid: 0, best }) if valid == 1 || outcome.matches > best.matches => {
                    Judged { valid, best: outcome }
                }
                Some(before) => Judged { valid: before.valid + valid, ..before },
            });
        }
        judged.unwrap_or(Judged { valid: 0, best: Outcome::default() })
    }
}

/// The types that a value may have; none where any will do.
fn types(node: Node<'_>) -> &'static [&'static str] {
    match &node.form {
        _ if node.any_type => &[],
        Form::Any | Form::Quantity => &[],
        Form::Boolean => &["boolean"],
        Form::Integer => &["integer"],
        Form::Number => &["number"],
        Form::String => &["string"],
        Form::IntOrString => &["integer", "string"],
        Form::List(_) => &["array"],
        Form::Map(_) | Form::Object(_) => &["object"],
    }
}

/// Whether a float is an integer that JavaScript would hold exactly.
fn is_integral(number: &Number) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    number
        .as_f64()
        .is_some_and(|float| number.is_f64() && float.fract() == 0.0 && float.abs() <= MOST)
}

/// Built-in types have been decoded as such; only what a schema adds to them is checked.
fn is_checked(node: Node<'_>, field: &Field) -> bool {
    let schema = node.at(field.schema);
    let built_in = node.type_name().is_some();
    !built_in || schema.rules.is_some() || !schema.allowed.is_empty()
}

/// A text that is the same for values that are.
fn comparable(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{:?}", number.as_f64()),
        _ => value.to_string(),
    }
}

/// Whether a listed value is meant: numbers are compared as such, whatever their notation.
fn is_same(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => allowed == value,
    }
}
