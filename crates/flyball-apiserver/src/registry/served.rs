//! The kinds served at one moment, by group and version, and the registry that replaces them group by group.
//! Documents made from a group or a version live beside it, so a change discards only its own group's documents.

use crate::encoding::document::Document;
use crate::openapi::OpenApi;
use crate::registry::Kind;
use bytes::Bytes;
use flyball_schema::kinds;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, RwLock};
use tokio::sync::watch;

/// The kinds served now.
pub struct Registry {
    served: RwLock<Arc<Served>>,
    changes: watch::Sender<u64>,
}

/// The kinds served at one moment.
pub struct Served {
    /// Counts the changes.
    pub number: u64,
    groups: BTreeMap<Arc<str>, Arc<Group>>,
    /// `/api` in its aggregated form.
    pub(crate) core: OnceLock<Document>,
    /// `/apis` in its aggregated form.
    pub(crate) named: OnceLock<Document>,
}

/// One group, its versions best first.
pub struct Group {
    /// Its name; empty for the core group.
    pub name: Arc<str>,
    /// Its versions, best first.
    pub versions: Vec<Arc<Version>>,
    /// Its position in discovery: built-in groups in the order of the table, then all others.
    rank: usize,
    /// Its entry in aggregated discovery.
    pub(crate) discovery: OnceLock<Bytes>,
}

/// One version of a group.
pub struct Version {
    /// Its name, such as `v1`.
    pub name: Box<str>,
    /// Its kinds, sorted by plural name.
    pub kinds: Vec<Arc<Kind>>,
    /// Its OpenAPI v3 document.
    pub(crate) open_api: OnceLock<Arc<OpenApi>>,
}

impl Registry {
    /// A registry that serves these kinds.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Registry {
        let mut by_group: BTreeMap<Arc<str>, Vec<Arc<Kind>>> = BTreeMap::new();
        for kind in kinds {
            by_group.entry((&*kind.resource.group).into()).or_default().push(Arc::new(kind));
        }
        let group = |(name, kinds): (Arc<str>, _)| (name.clone(), Arc::new(Group::new(name, kinds, None)));
        let groups = by_group.into_iter().map(group).collect();
        Registry {
            served: RwLock::new(Arc::new(Served::new(0, groups))),
            changes: watch::Sender::new(0),
        }
    }

    /// The kinds served now.
    pub fn served(&self) -> Arc<Served> {
        self.served.read().expect("no panic while held").clone()
    }

    /// Serves these kinds of a CustomResourceDefinition, and no others of it. The cost is that of the group.
    pub fn replace(&self, group: &str, definition: &str, kinds: Vec<Arc<Kind>>) {
        let mut served = self.served.write().expect("no panic while held");
        let old = served.groups.get(group).cloned();
        let is_other = |kind: &&Arc<Kind>| kind.custom.as_ref().is_none_or(|custom| custom.name != definition);
        let (kept, replaced): (Vec<_>, Vec<_>) = old.iter().flat_map(|group| group.kinds()).partition(is_other);
        let withdrawn = replaced.into_iter().filter(|old| !kinds.iter().any(|new| Arc::ptr_eq(old, new)));
        withdrawn.filter_map(|kind| kind.custom.as_ref()).for_each(|custom| custom.withdraw());
        let kinds: Vec<Arc<Kind>> = kept.into_iter().cloned().chain(kinds).collect();
        let mut groups = served.groups.clone();
        match kinds.is_empty() {
            true => groups.remove(group),
            false => {
                let name: Arc<str> = group.into();
                let new = Group::new(name.clone(), kinds, old.as_deref());
                groups.insert(name, Arc::new(new))
            }
        };
        let number = served.number + 1;
        *served = Arc::new(Served::new(number, groups));
        drop(served);
        self.changes.send_replace(number);
    }

    /// Reports each change of what is served, as [`Served::number`].
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Served {
    fn new(number: u64, groups: BTreeMap<Arc<str>, Arc<Group>>) -> Served {
        Served {
            number,
            groups,
            core: OnceLock::new(),
            named: OnceLock::new(),
        }
    }

    /// The kind at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.groups.get(group)?.version(version)?.kind(plural)
    }

    /// Every kind, sorted by group.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.groups.values().flat_map(|group| group.kinds())
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Arc<Group>> {
        self.groups.get(name)
    }

    /// The groups in the order of discovery: built-in groups as the table has them, then custom ones by name.
    pub fn groups(&self) -> Vec<&Arc<Group>> {
        let mut groups: Vec<&Arc<Group>> = self.groups.values().collect();
        groups.sort_by_key(|group| group.rank);
        groups
    }
}

impl Group {
    /// Sorts kinds into versions; a version that has the same kinds as in `old` is shared with it.
    fn new(name: Arc<str>, kinds: Vec<Arc<Kind>>, old: Option<&Group>) -> Group {
        let mut by_version: BTreeMap<Box<str>, Vec<Arc<Kind>>> = BTreeMap::new();
        for kind in kinds {
            by_version.entry(kind.resource.version.clone()).or_default().push(kind);
        }
        let version = |(name, kinds)| {
            let new = Version::new(name, kinds);
            let old = old.and_then(|old| old.version(&new.name)).filter(|old| old.is_same(&new));
            old.cloned().unwrap_or_else(|| Arc::new(new))
        };
        let mut versions: Vec<Arc<Version>> = by_version.into_iter().map(version).collect();
        versions.sort_by_key(|version| Reverse(version_priority(&version.name)));
        let rank = old.map_or_else(|| rank(&name), |old| old.rank);
        Group { name, versions, rank, discovery: OnceLock::new() }
    }

    /// The version of that name.
    pub fn version(&self, name: &str) -> Option<&Arc<Version>> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// Its kinds, in every version.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.versions.iter().flat_map(|version| &version.kinds)
    }
}

impl Version {
    fn new(name: Box<str>, mut kinds: Vec<Arc<Kind>>) -> Version {
        kinds.sort_by(|a, b| a.resource.plural.cmp(&b.resource.plural));
        Version { name, kinds, open_api: OnceLock::new() }
    }

    fn is_same(&self, other: &Version) -> bool {
        let same = |(a, b): (&Arc<Kind>, &Arc<Kind>)| Arc::ptr_eq(a, b);
        self.kinds.len() == other.kinds.len() && self.kinds.iter().zip(&other.kinds).all(same)
    }

    /// The kind of that plural name.
    pub fn kind(&self, plural: &str) -> Option<&Arc<Kind>> {
        let at = self.kinds.binary_search_by(|kind| (*kind.resource.plural).cmp(plural)).ok()?;
        self.kinds.get(at)
    }
}

/// The position of a built-in group in the table of kinds; custom groups come after all of them.
fn rank(group: &str) -> usize {
    let resources = &kinds::builtin().resources;
    resources.iter().position(|resource| &*resource.group == group).unwrap_or(resources.len())
}

/// `v2` > `v1` > `v2beta1` > `v1beta2` > `v1alpha1` > anything else, by name.
// apimachinery, `version.CompareKubeAwareVersionStrings`
pub(crate) fn version_priority(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let other = (0, 0, 0, Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else {
        return other;
    };
    let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let (stability, minor) = match rest {
        "" => (3, Ok(0)),
        _ if rest.starts_with("beta") => (2, rest["beta".len()..].parse()),
        _ if rest.starts_with("alpha") => (1, rest["alpha".len()..].parse()),
        _ => return other,
    };
    match (major.parse(), minor) {
        (Ok(major), Ok(minor)) => (stability, major, minor, Reverse(String::new())),
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_version_is_stable_and_high() {
        let mut versions = [
            "v1alpha1",
            "foo1",
            "v10",
            "v1",
            "v2beta1",
            "v1beta2",
            "v2",
            "v11alpha2",
            "bar",
            "v3x",
        ];

        versions.sort_by_key(|version| Reverse(version_priority(version)));

        let expected = [
            "v10",
            "v2",
            "v1",
            "v2beta1",
            "v1beta2",
            "v11alpha2",
            "v1alpha1",
            "bar",
            "foo1",
            "v3x",
        ];
        assert_eq!(versions, expected);
    }
}
