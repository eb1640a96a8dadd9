//! Defaults hold the rules of their schemas.
// apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go

use super::cost::MAX_OBJECT_COST;
use super::has_rules;
use super::validator::Validator;
use crate::crd::props::Props;
use crate::prune;
use crate::violation::Violation;

/// What the rules of a schema have against its defaults; a default against which there is something else is left out.
pub(in crate::crd) fn check_defaults(props: Props<'_>, path: &str, others: &[Violation]) -> Vec<Violation> {
    if !has_rules(props) {
        return Vec::new();
    }
    let mut check = Check { others, budget: MAX_OBJECT_COST, found: Vec::new() };
    check.schema(props, path, true);
    check.found
}

struct Check<'o> {
    others: &'o [Violation],
    budget: i64,
    found: Vec<Violation>,
}

impl Check<'_> {
    fn schema(&mut self, props: Props<'_>, path: &str, is_resource: bool) {
        if self.budget < 0 || !has_rules(props) {
            return;
        }
        let is_resource = is_resource || props.embeds_resource();
        if let Some(default) = props.get("default") {
            let path = format!("{path}.default");
            let is_wrong = self.others.iter().any(|other| other.path.starts_with(&path));
            if let (false, Some(validator)) = (is_wrong, Validator::new(props, is_resource)) {
                let (violations, left) = validator.validate_default(&path, default, self.budget);
                self.found.extend(violations);
                self.budget = left;
            }
        }
        if let Some(items) = props.items() {
            self.schema(items, &format!("{path}.items"), false);
        }
        for (name, property) in props.properties() {
            if !(is_resource && prune::is_meta(name)) {
                self.schema(property, &format!("{path}.properties[{name}]"), false);
            }
        }
    }
}
