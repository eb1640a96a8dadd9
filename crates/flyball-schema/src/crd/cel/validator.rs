//! The compiled rules of a schema, arranged like the schema.
// apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, NewValidator

use super::compile::{self, Rule};
use super::correlation::{Spine, list_map_keys};
use super::declaration::{Declaration, declare};
use super::escape::escape;
use super::{has_rules, shape};
use crate::crd::props::{Additional, Props};
use flyball_cel::Shape;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All rules of a schema, ready to be run.
#[derive(Debug)]
pub struct Validator {
    pub(super) root: Node,
    pub(super) spine: Spine,
}

/// The rules of one schema and of those below it.
#[derive(Debug)]
pub(super) struct Node {
    /// The keyword `type`, which errors show.
    pub(super) kind: Box<str>,
    pub(super) shape: Shape,
    pub(super) rules: Vec<Rule>,
    /// Whether any of the rules compares with the old value.
    pub(super) uses_old_self: bool,
    pub(super) properties: BTreeMap<Box<str>, Node>,
    pub(super) values: Option<Box<Node>>,
    pub(super) items: Option<Box<Node>>,
    /// The keys of a list of the type `map`.
    pub(super) keys: Vec<Box<str>>,
}

impl Validator {
    /// The rules of a schema, if it has any.
    pub(in crate::crd) fn new(props: Props<'_>, is_resource: bool) -> Option<Validator> {
        if !has_rules(props) {
            return None;
        }
        let declaration = declare(props, is_resource)?;
        let root = Node::new(props, is_resource, &declaration)?;
        Some(Validator { root, spine: Spine::of(props) })
    }

    /// What keeps rules from being run; an object to which such a rule applies is refused.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        self.root.collect_errors(&mut errors);
        errors
    }
}

impl Node {
    fn new(props: Props<'_>, is_resource: bool, declaration: &Declaration) -> Option<Node> {
        if !has_rules(props) {
            return None;
        }
        let child =
            |props: Props<'_>, declaration: &Declaration| Node::new(props, props.embeds_resource(), declaration);
        let element = |props: Props<'_>| child(props, declaration.element()?).map(Box::new);
        let property = |(name, property): (&str, Props<'_>)| {
            let declared = match escape(name) {
                Some(escaped) => Arc::clone(declaration.field(&escaped)?),
                None => declare(property, property.embeds_resource())?,
            };
            Some((name.into(), child(property, &declared)?))
        };
        let rules = compile::rules(props, declaration);
        let uses_old_self = |rule: &Rule| matches!(&rule.compiled, Some(Ok(compiled)) if compiled.uses_old_self);
        Some(Node {
            kind: props.kind().into(),
            shape: shape::shape(props, is_resource),
            uses_old_self: rules.iter().any(uses_old_self),
            rules,
            properties: props.properties().into_iter().filter_map(property).collect(),
            values: match props.additional() {
                Some(Additional::Schema(values)) => element(values),
                _ => None,
            },
            items: props.items().and_then(element),
            keys: list_map_keys(props),
        })
    }

    fn collect_errors(&self, errors: &mut Vec<String>) {
        for rule in &self.rules {
            if let Some(Err(error)) = &rule.compiled {
                errors.push(format!("rule {:?}: {error}", rule.text));
            }
        }
        let children = self.properties.values().chain(self.values.as_deref()).chain(self.items.as_deref());
        children.for_each(|child| child.collect_errors(errors));
    }
}
