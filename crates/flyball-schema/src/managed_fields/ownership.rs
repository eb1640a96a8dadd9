//! Who keeps, gains and loses fields when an object changes; what `apply` and `update` have in common.

use super::compare::{Comparison, compare};
use super::conflict::{Conflict, Conflicts};
use super::entry::{Entry, Operation};
use super::field_set::FieldSet;
use super::path::PathElement;
use super::shape::Type;
use super::{Request, Version};
use serde_json::Value;

/// What is known of the version of an entry.
pub(super) enum Known<'a> {
    /// The type of the object in that version.
    Type(Type<'a>),
    /// It exists, but cannot be compared.
    Foreign,
    /// It is no version of the kind any more.
    Gone,
}

impl<'a> Request<'a> {
    /// The type of the object in the version of the request.
    pub(super) fn ty(&self) -> Type<'a> {
        Type::root(self.node)
    }

    /// The type of the object in a version that an entry names.
    pub(super) fn version(&self, api_version: &str) -> Known<'a> {
        if api_version == self.api_version {
            return Known::Type(self.ty());
        }
        match self.versions.iter().find(|(name, _)| *name == api_version) {
            Some((_, Version::Same(node))) => Known::Type(Type::root(*node)),
            Some((_, Version::Foreign)) => Known::Foreign,
            None => Known::Gone,
        }
    }

    /// An entry of the one who asks, without fields.
    pub(super) fn entry(&self, operation: Operation) -> Entry<'a> {
        Entry {
            manager: if self.manager.is_empty() {
                "unknown"
            } else {
                self.manager
            },
            operation,
            api_version: self.api_version,
            subresource: self.subresource.unwrap_or_default(),
            time: None,
            fields: FieldSet::default(),
        }
    }

    /// The fields that the request never changes.
    pub(super) fn reset_fields(&self) -> FieldSet<'a> {
        let mut set = FieldSet::default();
        for path in self.reset {
            set.insert(&path.split('.').map(PathElement::Field).collect::<Vec<_>>());
        }
        set
    }
}

/// What others lose, and what the change was. With `Claim::Ask` nobody loses anything that was theirs and stays.
// structured-merge-diff, merge/update.go, Updater.update
pub(super) fn settle<'v, 'a: 'v>(
    request: &Request<'a>,
    entries: &mut Vec<Entry<'a>>,
    own: Option<&Entry<'_>>,
    (live, new): (&'v Value, &'v Value),
    claim: Claim,
) -> Result<Comparison<'v>, Conflicts> {
    let reset = request.reset_fields();
    let comparison = compare(request.ty(), live, new).without(&reset);
    let mut losses: Vec<Option<(FieldSet<'a>, FieldSet<'v>)>> = Vec::with_capacity(entries.len());
    let mut conflicts = Vec::new();
    for entry in entries.iter() {
        if own.is_some_and(|own| own.is(entry)) {
            losses.push(None);
            continue;
        }
        let converted;
        let comparison = match request.version(entry.api_version) {
            Known::Type(_) if entry.api_version == request.api_version => &comparison,
            Known::Type(ty) => {
                converted = compare(ty, live, new).without(&reset);
                &converted
            }
            Known::Foreign | Known::Gone => {
                losses.push(None);
                continue;
            }
        };
        let conflict = entry.fields.intersection(&comparison.changed());
        if !conflict.is_empty() {
            conflicts.push((entry.identity(), conflicts_with(entry, &conflict)));
        }
        losses.push(Some((conflict, comparison.removed.clone())));
    }
    if claim == Claim::Ask && !conflicts.is_empty() {
        conflicts.sort_by(|a, b| a.0.cmp(&b.0));
        return Err(Conflicts(conflicts.into_iter().flat_map(|(_, conflicts)| conflicts).collect()));
    }
    for (entry, loss) in entries.iter_mut().zip(losses) {
        if let Some((conflict, removed)) = loss {
            entry.fields.subtract(&conflict);
            entry.fields.subtract(&removed);
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    Ok(comparison)
}

/// Whether a change takes from others what it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// No: it is refused with conflicts.
    Ask,
    /// Yes.
    Force,
}

fn conflicts_with(entry: &Entry<'_>, fields: &FieldSet<'_>) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    fields.for_each(&mut |path| {
        let field = path.iter().map(ToString::to_string).collect();
        conflicts.push(Conflict { manager: entry.shown(), field });
    });
    conflicts
}

/// Takes away what nobody owns.
// apimachinery, util/managedfields/internal/stripmeta.go
pub(super) fn strip_metadata(fields: &mut FieldSet<'_>) {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let mut stripped = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        stripped.insert(&[PathElement::Field(name)]);
    }
    for name in METADATA {
        stripped.insert(&[PathElement::Field("metadata"), PathElement::Field(name)]);
    }
    fields.subtract(&stripped);
}
