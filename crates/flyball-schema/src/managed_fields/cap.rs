//! At most ten writers are remembered one by one; older ones become `ancient-changes`.

use super::entry::{Entry, Operation};
use super::field_set::FieldSet;

const MOST: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest entries of updates, those of one version with each other, until there are ten.
// apimachinery, util/managedfields/internal/capmanagers.go
pub(super) fn cap(entries: &mut Vec<Entry<'_>>) {
    let mut updates: Vec<_> = (0..entries.len())
        .filter(|index| entries[*index].operation == Operation::Update)
        .collect();
    if updates.len() <= MOST {
        return;
    }
    updates.sort_by_cached_key(|index| (entries[*index].seconds(), entries[*index].identity()));
    let mut left = updates.len();
    let mut firsts: Vec<usize> = Vec::new();
    for index in updates {
        if left <= MOST {
            break;
        }
        let version = entries[index].api_version;
        let Some(first) = firsts.iter().copied().find(|first| entries[*first].api_version == version) else {
            firsts.push(index);
            continue;
        };
        let bucket = bucket(entries, first);
        let (fields, time) = (std::mem::take(&mut entries[index].fields), entries[index].time.clone());
        entries[bucket].fields.unite(fields);
        entries[bucket].time = time;
        entries[bucket].stored = None;
        left -= 1;
    }
    entries.retain(|entry| !entry.fields.is_empty());
}

/// Where old changes of a version are collected: in the entry of that name, which the oldest one becomes if there is none.
fn bucket(entries: &mut [Entry<'_>], first: usize) -> usize {
    let bucket = Entry {
        manager: ANCIENT,
        operation: Operation::Update,
        api_version: entries[first].api_version,
        subresource: "",
        time: None,
        fields: FieldSet::default(),
        stored: None,
    };
    if let Some(index) = entries.iter().position(|entry| entry.is(&bucket)) {
        return index;
    }
    entries[first].manager = ANCIENT;
    entries[first].subresource = "";
    first
}
