//! Ownership after a create, an update or a patch: the writer owns what it changed.

use super::Request;
use super::cap::cap;
use super::check::{Duplicates, check};
use super::entry::{self, Entry, Operation};
use super::field_set::FieldSet;
use super::ownership::{Claim, settle, strip_metadata};
use super::reconcile::reconcile;
use super::zero::zero;
use serde_json::Value;
use std::borrow::Cow;

/// The entries of `new`; none if it is not tracked.
pub(super) fn entries_after(request: &Request<'_>, new: &Value) -> Vec<Value> {
    let Some(before) = entries_before(request, new) else {
        return Vec::new();
    };
    let empty;
    let live = match request.live {
        Some(live) => live,
        None => {
            empty = zero(request.node, new);
            &empty
        }
    };
    let fits = |object| check(request.ty(), object, Duplicates::Allowed).is_ok();
    if !fits(live) || !fits(new) {
        // Upstream gives up tracking rather than the write: FieldManager.UpdateNoErrors.
        return Vec::new();
    }
    let request = Request { live: Some(live), ..*request };
    let mut entries = before;
    reconcile(&request, &mut entries);
    let current = record(&request, &mut entries, live, new);
    if let Some(current) = current {
        join(&mut entries, current);
    }
    cap(&mut entries);
    entry::encode(entries)
}

/// The entries to start from, or none if the object is not tracked.
// apimachinery, util/managedfields/internal/fieldmanager.go, decodeLiveOrNew; skipnonapplied.go, Update
fn entries_before<'v>(request: &Request<'v>, new: &'v Value) -> Option<Vec<Entry<'v>>> {
    let live = || request.live.and_then(|live| entry::decode_stored(live).ok()).unwrap_or_default();
    let entries = if request.subresource.is_some() {
        live()
    } else if entry::is_reset(new) {
        Vec::new()
    } else {
        entry::decode(new).ok().filter(|entries| !entries.is_empty()).unwrap_or_else(live)
    };
    let is_stored = request.live.is_some_and(|live| live.pointer("/metadata/uid").is_some());
    (!entries.is_empty() || !is_stored).then_some(entries)
}

/// Takes from the entries what the change touched and gives it to the writer; none if it touched nothing.
pub(super) fn record<'v>(
    request: &Request<'v>,
    entries: &mut Vec<Entry<'v>>,
    live: &'v Value,
    new: &'v Value,
) -> Option<Entry<'v>> {
    let comparison = settle(request, entries, (live, new), Claim::Force).ok()?;
    let mut fields: FieldSet<'v> = comparison.changed();
    fields.subtract_trees(&request.reset_fields());
    strip_metadata(&mut fields);
    let time = Some(Cow::Borrowed(request.now));
    (!fields.is_empty()).then(|| Entry { fields, time, ..request.entry(Operation::Update) })
}

/// Adds an entry to the one of the same identity.
fn join<'v>(entries: &mut Vec<Entry<'v>>, current: Entry<'v>) {
    match entries.iter_mut().find(|entry| entry.is(&current)) {
        Some(entry) => {
            entry.fields.unite(current.fields);
            entry.time = current.time;
            entry.stored = None;
        }
        None => entries.push(current),
    }
}
