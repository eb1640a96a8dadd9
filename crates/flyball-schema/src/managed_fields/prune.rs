//! What is taken out of an object because its manager stopped applying it, and nobody else owns it.

use super::Request;
use super::entry::Entry;
use super::field_set::FieldSet;
use super::fields_of::fields_of;
use super::ownership::Known;
use super::remove::remove;
use super::shape::Type;
use serde_json::Value;
use std::borrow::Cow;

/// The merged object without what `last` had and nobody has now.
// structured-merge-diff, merge/update.go, Updater.prune
pub(super) fn prune<'v>(
    request: &Request<'_>,
    merged: Cow<'v, Value>,
    (own, others): (&Entry<'_>, &[Entry<'_>]),
    last: Option<&Entry<'_>>,
) -> Cow<'v, Value> {
    let Some(last) = last else { return merged };
    if last.api_version == own.api_version && own.fields.covers(&last.fields) {
        // All that it had is owned still, with every item and key on the way there: nothing can go.
        return merged;
    }
    let Known::Type(ty) = request.version(last.api_version) else {
        return merged;
    };
    let named = last.fields.clone().with_named_fields(ty);
    let mut pruned = remove(ty, &merged, &named);
    let entries = || others.iter().chain([own]);
    for (ty, owned) in owned_by_version(request, entries(), last.api_version, ty) {
        pruned = add_back_owned(ty, &merged, &pruned, owned);
    }
    let mut gone = fields_of(ty, &merged).with_named_fields(ty);
    gone.subtract(&fields_of(ty, &pruned).with_named_fields(ty));
    let gone = gone.intersection(&named);
    if gone.is_empty() {
        merged
    } else {
        Cow::Owned(remove(ty, &merged, &gone))
    }
}

/// What anybody owns in each version, the given version first. What is owned in a foreign version is kept as if in this one.
fn owned_by_version<'e, 't>(
    request: &Request<'t>,
    entries: impl Iterator<Item = &'e Entry<'e>>,
    first: &'e str,
    ty: Type<'t>,
) -> Vec<(Type<'t>, FieldSet<'e>)> {
    let mut versions: Vec<(&str, Type<'t>, FieldSet<'e>)> = vec![(first, ty, FieldSet::default())];
    for entry in entries {
        let (version, ty) = match request.version(entry.api_version) {
            Known::Type(ty) => (entry.api_version, ty),
            Known::Foreign => (first, ty),
            Known::Gone => continue,
        };
        match versions.iter_mut().find(|(known, ..)| *known == version) {
            Some((_, _, owned)) => owned.unite(entry.fields.clone()),
            None => versions.push((version, ty, entry.fields.clone())),
        }
    }
    versions
        .into_iter()
        .filter(|(.., owned)| !owned.is_empty())
        .map(|(_, ty, owned)| (ty, owned))
        .collect()
}

/// The merged object with what `pruned` still has and what is owned.
fn add_back_owned(ty: Type<'_>, merged: &Value, pruned: &Value, owned: FieldSet<'_>) -> Value {
    let mut gone = fields_of(ty, merged).with_named_fields(ty);
    gone.subtract(&fields_of(ty, pruned).with_named_fields(ty));
    gone.subtract(&owned.with_named_fields(ty));
    remove(ty, merged, &gone)
}
