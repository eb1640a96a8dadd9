//! What the rules of a definition may cost: estimates before they are accepted, and how refusals say it.
// apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go

use super::declaration::{Declaration, Kind, MAX_REQUEST_BYTES};
use crate::crd::props::Props;
use crate::violation::Violation;
use flyball_cel::{Env, Program, SizeEstimate, SizeEstimator, Type};
use std::sync::Arc;

/// What one evaluation may cost.
pub(super) const MAX_CALL_COST: u64 = 1_000_000;
/// What all evaluations for one object may cost together.
pub(super) const MAX_OBJECT_COST: i64 = 10_000_000;
/// What a rule may cost for one object, as estimated when the definition is written.
const MAX_RULE_COST: u64 = 10_000_000;
/// What the rules of a schema may cost for one object, as estimated when the definition is written.
const MAX_SCHEMA_COST: u64 = 100_000_000;
/// How many rules a refusal of a whole schema names.
const MAX_NAMED: usize = 4;

/// Whether estimates of single rules are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostLimit {
    /// No rule may cost more than its limit.
    PerRule,
    /// The schema was accepted before and has not changed; only the limit of the whole schema applies.
    SchemaOnly,
}

/// What an expression costs at most, as far as the limits of the schema tell.
pub(super) fn estimate(program: &Program, env: &Env, declaration: &Declaration) -> u64 {
    env.estimate_cost(program.checked(), declaration).max
}

impl SizeEstimator for Declaration {
    // compilation.go, sizeEstimator: both variables have the type of the value that the rule is about.
    fn estimate_size(&self, path: &[Arc<str>], _kind: &Type) -> Option<SizeEstimate> {
        let (_, steps) = path.split_first()?;
        let mut declaration = self;
        for step in steps {
            declaration = match (&**step, &declaration.kind) {
                ("@items" | "@values", _) => declaration.element()?,
                ("@keys", Kind::Map(_)) => return Some(SizeEstimate { min: 0, max: 0 }),
                (name, _) => declaration.field(name)?,
            };
        }
        Some(SizeEstimate { min: 0, max: declaration.max_elements })
    }
}

/// How often a value can occur in one request if nothing but its size limits that.
pub(super) fn max_occurrences(declaration: &Declaration) -> u64 {
    MAX_REQUEST_BYTES / (declaration.min_bytes + 1)
}

/// By how much a schema multiplies the values below it; none if nothing limits that.
pub(super) fn multiplicity(props: Props<'_>) -> Option<u64> {
    match props.kind() {
        "object" => match props.additional() {
            None => Some(1),
            Some(_) => props.count("maxProperties"),
        },
        "array" => props.count("maxItems"),
        _ => Some(1),
    }
}

/// The refusal of an expression that costs too much.
pub(super) fn check_rule(path: &str, what: &str, cost: u64, limit: CostLimit) -> Option<Violation> {
    let exceeds = limit == CostLimit::PerRule && cost > MAX_RULE_COST;
    exceeds.then(|| Violation::forbidden(path, &exceeded(&format!("estimated {what} cost"), cost, MAX_RULE_COST)))
}

/// The estimates of a schema's rules together.
#[derive(Default)]
pub(super) struct TotalCost {
    total: u64,
    most_expensive: Vec<(String, u64)>,
}

impl TotalCost {
    pub(super) fn add(&mut self, path: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < MAX_SCHEMA_COST / 100 {
            return;
        }
        self.most_expensive.push((path.to_owned(), cost));
        self.most_expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.most_expensive.truncate(MAX_NAMED);
    }

    /// The refusal of a schema whose rules cost too much together.
    pub(super) fn check(self, path: &str) -> Vec<Violation> {
        if self.total <= MAX_SCHEMA_COST {
            return Vec::new();
        }
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let named = self.most_expensive.iter().map(|(path, _)| Violation::forbidden(path, why));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let whole = Violation::forbidden(path, &exceeded(what, self.total, MAX_SCHEMA_COST));
        named.chain([whole]).collect()
    }
}

// getCostErrorMessage
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
