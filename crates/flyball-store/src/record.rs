//! One version of one key in one allocation, which index, history, disk and readers share; and the stamping of revisions.

use crate::{Entry, Error, Result, Value};
use bytes::Bytes;

/// A stored version: header, key and value. The header is revision, created, length of the key, place of the stamp and
/// position in the commit; `created` is 0 for a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record(Bytes);

const HEADER: usize = 8 + 8 + 4 + 4 + 4;
const UNSTAMPED: u32 = u32::MAX;
const LARGEST: usize = 1 << 30;

/// Where a version stands: its revision, when its key came into being, and which operation of the commit it was.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub revision: u64,
    pub created: u64,
    pub position: u32,
}

impl Record {
    pub fn put(key: &[u8], value: &Value, place: Place) -> Record {
        let Some(at) = value.revision_at else {
            return Record::write(place, key, UNSTAMPED, &[&value.bytes]);
        };
        let (before, after) = value.bytes.split_at(at);
        Record::write(place, key, at as u32, &[before, place.revision.to_string().as_bytes(), after])
    }

    /// The record of an entry as it was read.
    pub fn of(entry: &Entry, position: u32) -> Record {
        let place = Place { revision: entry.revision, created: entry.created, position };
        let stamp = entry.revision_at.map_or(UNSTAMPED, |at| at as u32);
        Record::write(place, &entry.key, stamp, &[&entry.value])
    }

    pub fn removal(key: &[u8], revision: u64, position: u32) -> Record {
        Record::write(Place { revision, created: 0, position }, key, UNSTAMPED, &[])
    }

    /// Refuses what [`Record::put`] could not write.
    pub fn check(key: &Bytes, value: &Value) -> Result<()> {
        let length = key.len().saturating_add(value.bytes.len());
        if length > LARGEST {
            return Err(Error::TooLarge { key: key.slice(..key.len().min(256)), length });
        }
        match value.revision_at {
            Some(revision_at) if revision_at > value.bytes.len() => {
                Err(Error::StampOutside { key: key.clone(), revision_at, length: value.bytes.len() })
            }
            _ => Ok(()),
        }
    }

    fn write(place: Place, key: &[u8], stamp: u32, value: &[&[u8]]) -> Record {
        let length = HEADER + key.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&place.revision.to_be_bytes());
        bytes.extend_from_slice(&place.created.to_be_bytes());
        bytes.extend_from_slice(&(key.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&stamp.to_be_bytes());
        bytes.extend_from_slice(&place.position.to_be_bytes());
        bytes.extend_from_slice(key);
        value.iter().for_each(|part| bytes.extend_from_slice(part));
        Record(Bytes::from(bytes))
    }

    /// The same version as another operation of its commit.
    pub fn at(&self, position: u32) -> Record {
        Record::of(&self.entry(), position)
    }

    pub fn revision(&self) -> u64 {
        u64::from_be_bytes(self.field(0))
    }

    pub fn created(&self) -> u64 {
        u64::from_be_bytes(self.field(8))
    }

    pub fn position(&self) -> u32 {
        u32::from_be_bytes(self.field(24))
    }

    pub fn is_removal(&self) -> bool {
        self.created() == 0
    }

    pub fn key(&self) -> &[u8] {
        &self.0[HEADER..self.value_from()]
    }

    pub fn key_bytes(&self) -> Bytes {
        self.0.slice(HEADER..self.value_from())
    }

    pub fn value_bytes(&self) -> Bytes {
        self.0.slice(self.value_from()..)
    }

    /// The whole record, as it is kept on disk.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads a record as it was kept on disk; `None` where it is none.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        let record = Record(Bytes::copy_from_slice(bytes));
        if bytes.len() < HEADER || bytes.len() < record.value_from() {
            return None;
        }
        let value = bytes.len() - record.value_from();
        let stamp = record.revision_at().map(|at| at + record.revision().to_string().len());
        (stamp.unwrap_or(0) <= value && record.created() <= record.revision()).then_some(record)
    }

    /// The bytes that this record keeps from being freed.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    pub fn entry(&self) -> Entry {
        Entry {
            key: self.key_bytes(),
            value: self.value_bytes(),
            revision: self.revision(),
            revision_at: self.revision_at(),
            created: self.created(),
        }
    }

    /// The entry as it is last seen: stamped with the revision of its removal.
    pub fn removed_entry(&self, revision: u64) -> Entry {
        self.entry().removed_at(revision)
    }

    fn revision_at(&self) -> Option<usize> {
        let stamp = u32::from_be_bytes(self.field(20));
        (stamp != UNSTAMPED).then_some(stamp as usize)
    }

    fn value_from(&self) -> usize {
        HEADER + u32::from_be_bytes(self.field(16)) as usize
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("a record has a header")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(revision: u64) -> Record {
        let value = Value::stamped(&b"{\"rv\":\"\"}"[..], 7);
        Record::put(b"/a", &value, Place { revision, created: 3, position: 0 })
    }

    #[test]
    fn the_revision_is_written_where_the_value_wants_it() {
        let entry = stamped(12).entry();
        assert_eq!(entry.value, "{\"rv\":\"12\"}");
        assert_eq!((entry.revision, entry.revision_at, entry.created), (12, Some(7), 3));
    }

    #[test]
    fn a_removed_entry_names_the_revision_of_its_removal() {
        let entry = stamped(99).removed_entry(100);
        assert_eq!(entry.value, "{\"rv\":\"100\"}");
        assert_eq!((entry.revision, entry.created), (100, 3));
    }

    #[test]
    fn a_stamp_outside_of_its_value_is_refused() {
        let key = Bytes::from("/a");
        let error = Record::check(&key, &Value::stamped("abc", 4)).unwrap_err();
        assert_eq!(error.to_string(), "commit /a: the revision belongs at byte 4 of a value of 3");
        assert!(Record::check(&key, &Value::stamped("abc", 3)).is_ok());
    }
}
