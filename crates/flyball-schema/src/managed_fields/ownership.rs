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
            stored: None,
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

/// Takes from the entries what a change removes and, with `Claim::Force`, what it touches; says what the change is.
// structured-merge-diff, merge/update.go, Updater.update
pub(super) fn settle<'v, 'a: 'v>(
    request: &Request<'a>,
    entries: &mut Vec<Entry<'_>>,
    (live, new): (&'v Value, &'v Value),
    claim: Claim,
) -> Result<Comparison<'v>, Conflicts> {
    let reset = request.reset_fields();
    let comparison = compare(request.ty(), live, new).without(&reset);
    let mut changes = vec![Change::new(request.api_version, comparison)];
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut() {
        let Some(change) = change(request, &mut changes, entry.api_version, (live, new), &reset) else {
            continue;
        };
        let conflict = entry.fields.intersection(&change.changed);
        match claim {
            Claim::Force => drop(entry.lose(&conflict)),
            Claim::Ask if conflict.is_empty() => {}
            Claim::Ask => conflicts.push((entry.identity(), conflicts_with(entry, &conflict))),
        }
        entry.lose(&change.comparison.removed);
    }
    if !conflicts.is_empty() {
        conflicts.sort_by(|a, b| a.0.cmp(&b.0));
        return Err(Conflicts(conflicts.into_iter().flat_map(|(_, conflicts)| conflicts).collect()));
    }
    entries.retain(|entry| !entry.fields.is_empty());
    Ok(changes.swap_remove(0).comparison)
}

/// A change as one version has it.
struct Change<'v> {
    api_version: String,
    comparison: Comparison<'v>,
    changed: FieldSet<'v>,
}

impl<'v> Change<'v> {
    fn new(api_version: &str, comparison: Comparison<'v>) -> Change<'v> {
        Change {
            api_version: api_version.to_owned(),
            changed: comparison.changed(),
            comparison,
        }
    }
}

/// The change as the version of an entry has it; none if that cannot be compared.
fn change<'c, 'v, 'a: 'v>(
    request: &Request<'a>,
    changes: &'c mut Vec<Change<'v>>,
    api_version: &str,
    (live, new): (&'v Value, &'v Value),
    reset: &FieldSet<'_>,
) -> Option<&'c Change<'v>> {
    let index = changes.iter().position(|change| change.api_version == api_version);
    let index = match (index, request.version(api_version)) {
        (Some(index), _) => index,
        (None, Known::Type(ty)) => {
            changes.push(Change::new(api_version, compare(ty, live, new).without(reset)));
            changes.len() - 1
        }
        (None, Known::Foreign | Known::Gone) => return None,
    };
    Some(&changes[index])
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
