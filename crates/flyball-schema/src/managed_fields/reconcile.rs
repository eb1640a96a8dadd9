//! Ownership after a type changed between granular and atomic.

use super::Request;
use super::entry::Entry;
use super::field_set::{FieldNode, FieldSet};
use super::ownership::Known;
use super::path::PathElement;
use super::shape::{Shape, Type};

/// The entries as the types of today have them, without those in versions that are gone.
// structured-merge-diff, merge/update.go, reconcileManagedFieldsWithSchemaChanges
pub(super) fn reconcile<'a>(request: &Request<'_>, entries: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
    let mut entries = entries;
    entries.retain_mut(|entry| match request.version(entry.api_version) {
        Known::Type(ty) => {
            fields(ty, &mut entry.fields);
            true
        }
        Known::Foreign => true,
        Known::Gone => false,
    });
    entries
}

/// Who owned parts of what is atomic now owns the whole.
// structured-merge-diff, typed/reconcile_schema.go; from atomic to granular nothing changes.
fn fields(ty: Type<'_>, set: &mut FieldSet<'_>) {
    match ty.atom().shape() {
        Shape::Map(map) => {
            for node in &mut set.nodes {
                if let PathElement::Field(name) = node.element {
                    below(map.field(name), node);
                }
            }
        }
        Shape::List(list) => {
            for node in &mut set.nodes {
                below(list.items, node);
            }
        }
        Shape::Scalar(_) | Shape::Nothing => {}
    }
}

fn below(ty: Type<'_>, node: &mut FieldNode<'_>) {
    if matches!(ty, Type::Undeclared | Type::Deduced | Type::Atomic) || node.below.is_empty() {
        return;
    }
    let atomic = match ty.atom().shape() {
        Shape::Map(map) => map.atomic,
        Shape::List(list) => list.is_atomic(),
        Shape::Scalar(_) | Shape::Nothing => false,
    };
    if atomic {
        node.member = true;
        node.below = FieldSet::default();
    } else {
        fields(ty, &mut node.below);
    }
}
