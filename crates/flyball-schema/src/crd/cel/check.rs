//! What is wrong with the rules of a schema when a definition is written.
// apiextensions-apiserver/pkg/apis/apiextensions/validation, ValidateCustomResourceDefinitionOpenAPISchema

use super::compile::{self, Compiled, Rule};
use super::cost::{self, CostLimit, TotalCost};
use super::declaration::{Declaration, declare};
use super::{KEYWORD, field_path, has_rules};
use crate::crd::props::{Additional, Props};
use crate::definition::internal_rule;
use crate::violation::{Reason, Violation};
use serde_json::Value;
use std::sync::Arc;

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// What is wrong with how the rules of one schema are written, without their expressions.
pub(in crate::crd) fn check_form(props: Props<'_>, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, rule) in props.list(KEYWORD).iter().enumerate() {
        check_one(rule, props, &format!("{path}.{KEYWORD}[{index}]"), &mut found);
    }
    found
}

fn check_one(rule: &Value, props: Props<'_>, path: &str, found: &mut Vec<Violation>) {
    let text = |field: &str| rule[field].as_str().unwrap_or_default();
    let at = |field: &str| format!("{path}.{field}");
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let (expression, message) = (text("rule").trim(), text("message").trim());
    if expression.is_empty() {
        found.push(Violation::required(at("rule"), "rule is not specified"));
    } else if !text("message").is_empty() && message.is_empty() {
        found.push(Violation::invalid(at("message"), text("message"), "must be non-empty if specified"));
    } else if has_breaks(message) {
        found.push(Violation::invalid(at("message"), text("message"), "must not contain line breaks"));
    } else if has_breaks(expression) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        found.push(Violation::required(at("message"), why));
    }
    if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        found.push(Violation::required(at("messageExpression"), why));
    }
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        found.push(Violation::not_supported(at("reason"), reason, &REASONS));
    }
    let field_path = text("fieldPath");
    if field_path.is_empty() {
        return;
    }
    let mut refuse = |why: &str| found.push(Violation::invalid(at("fieldPath"), field_path, why));
    if field_path.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if has_breaks(field_path) {
        refuse("must not contain line breaks");
    }
    if field_path::normalize(field_path, props).is_none() {
        refuse("must be a valid path");
    }
}

/// What is wrong with the expressions of a schema that is structural. Schemas in or below which something else was found are
/// left out.
pub(in crate::crd) fn check(props: Props<'_>, path: &str, others: &[Violation], limit: CostLimit) -> Vec<Violation> {
    let mut check = Check {
        others,
        limit,
        found: Vec::new(),
        total: TotalCost::default(),
    };
    let at = At {
        is_resource: true,
        uncorrelatable: None,
        cardinality: Some(1),
        declaration: None,
    };
    check.schema(props, path, at);
    check.found.extend(check.total.check(path));
    check.found
}

struct Check<'o> {
    /// What was found before.
    others: &'o [Violation],
    limit: CostLimit,
    found: Vec<Violation>,
    total: TotalCost,
}

/// What holds for a schema because of where it is.
#[derive(Clone, Copy)]
struct At<'a> {
    is_resource: bool,
    /// The outermost schema whose values cannot be correlated with old ones.
    uncorrelatable: Option<&'a str>,
    /// How many values of the schema one object may have; none if nothing limits that.
    cardinality: Option<u64>,
    /// What the schema around it declares for it.
    declaration: Option<&'a Arc<Declaration>>,
}

impl Check<'_> {
    fn schema(&mut self, props: Props<'_>, path: &str, at: At<'_>) {
        if !has_rules(props) {
            return;
        }
        let declaration = at.declaration.cloned().or_else(|| declare(props, at.is_resource));
        let cardinality = at.cardinality.zip(cost::multiplicity(props));
        let inner = At {
            is_resource: false,
            cardinality: cardinality.map(|(count, each)| count.saturating_mul(each)),
            declaration: None,
            ..at
        };
        let element = declaration.as_ref().and_then(|declaration| declaration.element());
        if let Some(Additional::Schema(values)) = props.additional() {
            let at = At {
                is_resource: values.embeds_resource(),
                declaration: element,
                ..inner
            };
            self.schema(values, &format!("{path}.additionalProperties"), at);
        }
        for (name, property) in props.properties() {
            let field = super::escape::escape(name).zip(declaration.as_ref());
            let at = At {
                is_resource: property.embeds_resource(),
                declaration: field.and_then(|(name, declaration)| declaration.field(&name)),
                ..inner
            };
            self.schema(property, &format!("{path}.properties[{name}]"), at);
        }
        if let Some(items) = props.items() {
            let is_keyed = props.text("x-kubernetes-list-type") == "map";
            let at = At {
                is_resource: items.embeds_resource(),
                uncorrelatable: at.uncorrelatable.or((!is_keyed).then_some(path)),
                declaration: element,
                ..inner
            };
            self.schema(items, &format!("{path}.items"), at);
        }
        if !props.list(KEYWORD).is_empty() && !self.has_others(path) {
            self.rules(props, path, at, declaration.as_deref());
        }
    }

    /// Whether something else was found in a schema or below it.
    fn has_others(&self, path: &str) -> bool {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
        self.others.iter().any(|other| other.path.strip_prefix(path).is_some_and(is_below))
    }

    fn rules(&mut self, props: Props<'_>, path: &str, at: At<'_>, declaration: Option<&Declaration>) {
        let path = format!("{path}.{KEYWORD}");
        let Some(declaration) = declaration else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                       convert structural schema to CEL declarations";
            self.found.push(Violation::internal(path, why));
            return;
        };
        let occurrences = at.cardinality.unwrap_or_else(|| cost::max_occurrences(declaration));
        let written = props.list(KEYWORD);
        for (index, rule) in compile::rules(props, declaration).into_iter().enumerate() {
            let path = format!("{path}[{index}]");
            match &rule.compiled {
                Some(Ok(compiled)) => self.compiled(&rule, compiled, &written[index], &path, at, occurrences),
                Some(Err(error)) => {
                    self.invalid(format!("{path}.rule"), &written[index], error);
                    self.unused_old_self(&rule, &path);
                }
                None => {}
            }
        }
    }

    fn compiled(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        written: &Value,
        path: &str,
        at: At<'_>,
        occurrences: u64,
    ) {
        self.cost(&format!("{path}.rule"), "rule", compiled.max_cost.saturating_mul(occurrences));
        let place = format!("{path}.messageExpression");
        match &compiled.message {
            Some(Err(error)) => self.invalid(place, written, error),
            Some(Ok(message)) => self.cost(&place, "messageExpression", message.max_cost),
            None => {}
        }
        match at.uncorrelatable {
            _ if !compiled.uses_old_self => self.unused_old_self(rule, path),
            Some(within) => {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
                self.found.push(Violation::invalid(format!("{path}.rule"), rule.text.as_str(), &why));
            }
            None => {}
        }
    }

    fn cost(&mut self, path: &str, what: &str, cost: u64) {
        self.found.extend(cost::check_rule(path, what, cost, self.limit));
        self.total.add(path, cost);
    }

    fn unused_old_self(&mut self, rule: &Rule, path: &str) {
        if let Some(optional) = rule.optional_old_self {
            let why = "may not be set if oldSelf is not used in rule";
            self.found.push(Violation::invalid(format!("{path}.optionalOldSelf"), optional, why));
        }
    }

    fn invalid(&mut self, path: String, written: &Value, why: &str) {
        self.found.push(Violation::with_text(path, Reason::Invalid, &internal_rule(written), why));
    }
}
