//! Ownership after a type changed between granular and atomic.

use super::Request;
use super::entry::Entry;
use super::field_set::{FieldNode, FieldSet};
use super::ownership::Known;
use super::path::PathElement;
use super::shape::{Shape, Type};

/// Brings entries to the types of today, and drops those in versions that are gone.
// structured-merge-diff, merge/update.go, reconcileManagedFieldsWithSchemaChanges
pub(super) fn reconcile(request: &Request<'_>, entries: &mut Vec<Entry<'_>>) {
    entries.retain_mut(|entry| match request.version(entry.api_version) {
        Known::Type(ty) => {
            if fields(ty, &mut entry.fields) {
                entry.stored = None;
            }
            !entry.fields.is_empty()
        }
        Known::Foreign => true,
        Known::Gone => false,
    });
}

/// Who owned parts of what is atomic now owns the whole; says whether anybody did.
// structured-merge-diff, typed/reconcile_schema.go; from atomic to granular nothing changes.
fn fields(ty: Type<'_>, set: &mut FieldSet<'_>) -> bool {
    let shape = ty.atom().shape();
    let mut changed = false;
    for node in &mut set.nodes {
        changed |= match (&shape, &node.element) {
            (Shape::Map(map), PathElement::Field(name)) => below(map.field(name), node),
            (Shape::List(list), _) => below(list.items, node),
            _ => false,
        };
    }
    changed
}

fn below(ty: Type<'_>, node: &mut FieldNode<'_>) -> bool {
    if matches!(ty, Type::Undeclared | Type::Deduced | Type::Atomic) || node.below.is_empty() {
        return false;
    }
    let atomic = match ty.atom().shape() {
        Shape::Map(map) => map.atomic,
        Shape::List(list) => list.is_atomic(),
        Shape::Scalar(_) | Shape::Nothing => false,
    };
    if !atomic {
        return fields(ty, &mut node.below);
    }
    node.member = true;
    node.below = FieldSet::default();
    true
}
