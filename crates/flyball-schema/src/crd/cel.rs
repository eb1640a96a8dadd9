//! Validation rules in CEL (`x-kubernetes-validations`): compiled once per version of a definition, checked when the
//! definition is written, and run on every object that is written. The language itself is `flyball-cel`.
// apiextensions-apiserver/pkg/apiserver/schema/cel

mod check;
mod compile;
mod correlation;
mod cost;
pub(crate) mod declaration;
mod defaults;
pub(crate) mod escape;
mod field_path;
mod run;
mod shape;
mod validator;

pub use run::Findings;
pub use validator::Validator;

pub(super) use check::{check, check_form};
pub(super) use cost::CostLimit;
pub(super) use defaults::check_defaults;

use super::props::Props;

/// The keyword that holds the rules of a schema.
const KEYWORD: &str = "x-kubernetes-validations";

/// Whether a schema has rules, at any level.
pub(super) fn has_rules(props: Props<'_>) -> bool {
    let additional = match props.additional() {
        Some(super::props::Additional::Schema(schema)) => has_rules(schema),
        _ => false,
    };
    !props.list(KEYWORD).is_empty()
        || additional
        || props.items().is_some_and(has_rules)
        || props.properties().into_iter().any(|(_, property)| has_rules(property))
}
