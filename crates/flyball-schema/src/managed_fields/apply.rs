//! Server-side apply: merge, prune, settle who owns what.

use super::check::{Duplicates, check};
use super::conflict::Conflicts;
use super::entry::{self, Entry, Operation};
use super::fields_of::fields_of;
use super::last_applied;
use super::merge::{is_same, merge};
use super::ownership::{Claim, settle, strip_metadata};
use super::prune::prune;
use super::reconcile::reconcile;
use super::timestamps::same_but_entries;
use super::update::record;
use super::zero::zero;
use super::{ApplyError, Request};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The manager of what was there before anybody applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The object after an apply, with its entries; `None` if nothing changes.
pub(super) fn apply(request: &Request<'_>, config: &Value, force: bool) -> Result<Option<Value>, ApplyError> {
    let untyped = |attempt: &str, object: &Value, reason: &dyn std::fmt::Display| {
        ApplyError::Untyped(format!("{attempt} ({}): {reason}", named(object)))
    };
    let empty = Value::Object(Map::new());
    let live = request.live.unwrap_or(&empty);
    let before = entry::decode_stored(live)
        .map_err(|reason| ApplyError::Untyped(format!("failed to decode managed fields: {reason}")))?;
    check_request(request, config)?;
    check(request.ty(), config, Duplicates::Refused)
        .map_err(|misfits| untyped("failed to create typed patch object", config, &misfits))?;
    check(request.ty(), live, Duplicates::Allowed)
        .map_err(|misfits| untyped("failed to create typed live object", live, &misfits))?;

    let start;
    let before = if before.is_empty() && request.live.is_some() {
        start = zero(request.node, live);
        let request = Request { manager: BEFORE_FIRST_APPLY, ..*request };
        record(&request, &mut Vec::new(), &start, live).into_iter().collect()
    } else {
        before
    };
    let claim = if force { Claim::Force } else { Claim::Ask };
    let applied = if request.manager == last_applied::MANAGER && !force {
        match attempt(request, live, config, before.clone(), claim) {
            Err(conflicts) => {
                last_applied::forgive(request, live, conflicts).map_err(ApplyError::Conflicts)?;
                attempt(request, live, config, before, Claim::Force)
            }
            applied => applied,
        }
    } else {
        attempt(request, live, config, before, claim)
    };
    Ok(finish(request, live, config, applied.map_err(ApplyError::Conflicts)?))
}

/// What came of an attempt.
struct Applied<'v> {
    /// The merged object, unless it is as before.
    object: Option<Value>,
    entries: Vec<Entry<'v>>,
}

// structured-merge-diff, merge/update.go, Updater.Apply
fn attempt<'v>(
    request: &Request<'v>,
    live: &'v Value,
    config: &'v Value,
    before: Vec<Entry<'v>>,
    claim: Claim,
) -> Result<Applied<'v>, Conflicts> {
    let ty = request.ty();
    let mut others = before;
    reconcile(request, &mut others);
    let mut own = request.entry(Operation::Apply);
    own.fields = fields_of(ty, config);
    own.fields.subtract_trees(&request.reset_fields());
    let last = others.iter().position(|entry| entry.is(&own)).map(|index| others.swap_remove(index));
    own.time = last.as_ref().and_then(|last| last.time.clone());

    let merged = prune(request, merge(ty, live, config), (&own, &others), last.as_ref());
    let changed = !is_same(&merged, live) && !same_but_entries(live, &merged);
    if changed {
        settle(request, &mut others, (live, &merged), claim)?;
        own.time = Some(Cow::Borrowed(request.now));
    }
    strip_metadata(&mut own.fields);
    if let Some(last) = last.filter(|last| !changed && last.api_version == own.api_version) {
        own.stored = last.stored.filter(|_| last.fields == own.fields);
    }
    others.extend((!own.fields.is_empty()).then_some(own));
    Ok(Applied {
        object: changed.then(|| merged.into_owned()),
        entries: others,
    })
}

fn finish(request: &Request<'_>, live: &Value, config: &Value, applied: Applied<'_>) -> Option<Value> {
    let annotation = last_applied::renewed(request, applied.object.as_ref().unwrap_or(live), config);
    if applied.object.is_none() && annotation.is_none() && entry::are_stored(&applied.entries, live) {
        return None;
    }
    let mut object = applied.object.unwrap_or_else(|| live.clone());
    if let Some(annotation) = annotation {
        last_applied::annotate(&mut object, annotation);
    }
    entry::store(&mut object, entry::encode(applied.entries));
    Some(object)
}

// apimachinery, util/managedfields/internal/versioncheck.go and structuredmerge.go, Apply
fn check_request(request: &Request<'_>, config: &Value) -> Result<(), ApplyError> {
    let text = |name| config.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != request.api_version || text("kind") != request.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", kind_of(config))));
    }
    if entry::listed(config).is_some() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    Ok(())
}

/// `default/ada; apps/v1, Kind=Deployment`.
fn named(object: &Value) -> String {
    let metadata = |name| object.get("metadata")?.get(name)?.as_str();
    let name = metadata("name").unwrap_or_default();
    format!("{}/{name}; {}", metadata("namespace").unwrap_or_default(), kind_of(object))
}

fn kind_of(object: &Value) -> String {
    let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}
