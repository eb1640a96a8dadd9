//! Defaults are values of their schema, with nothing in them that would be pruned.
// apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go

use super::Structural;
use crate::prune;
use crate::schema::Node;
use crate::validate;
use crate::violation::Violation;

/// What is wrong with the defaults of a schema.
pub(super) fn check(structural: &Structural, path: &str) -> Vec<Violation> {
    check_at(structural.node(), path, true)
}

fn check_at(node: Node<'_>, path: &str, resource: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Some(default) = &node.default {
        let path = format!("{path}.default");
        let mut pruned = default.clone();
        if !prune::prune_value(node, &mut pruned).is_empty() {
            found.push(Violation::invalid(&path, default.clone(), "must not have unknown fields"));
        }
        found.extend(validate::validate_default(&path, node, default));
    }
    if let Some(items) = node.items() {
        found.extend(check_at(items, &format!("{path}.items"), false));
    }
    for field in node.fields() {
        // Metadata has no defaults at the root; that has been refused by then.
        if resource && prune::is_meta(&field.name) {
            continue;
        }
        found.extend(check_at(node.at(field.schema), &format!("{path}.properties[{}]", field.name), false));
    }
    found
}
