//! One version of one key in one piece of memory, which index, history, disk and readers share; and the stamping of revisions.

use crate::{Entry, Error, Result, Value};
use bytes::{Bytes, BytesMut};

/// A stored version: header, key and value. The header is revision, created, length of the key, place of the stamp and
/// position in the commit; `created` is 0 for a removal. An outline is without the value, which is on disk then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    bytes: Bytes,
    /// How long it is with its value.
    size: u32,
}

const KEY_LENGTH: usize = 8 + 8;
const POSITION: usize = KEY_LENGTH + 4 + 4;
const HEADER: usize = POSITION + 4;
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
    #[cfg(test)]
    pub fn put(key: &[u8], value: &Value, place: Place) -> Record {
        Draft::of(key, value, place.revision, BytesMut::zeroed).finish(place)
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

    /// Refuses what [`Draft::of`] could not write.
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
        let bytes = write(place, key, stamp, value, BytesMut::zeroed);
        Record { size: bytes.len() as u32, bytes: bytes.freeze() }
    }

    /// The same version as another operation of its commit.
    pub fn at(self, position: u32) -> Record {
        let mut bytes = Vec::from(self.bytes);
        bytes[POSITION..HEADER].copy_from_slice(&position.to_be_bytes());
        Record { bytes: bytes.into(), size: self.size }
    }

    /// The same version without its value.
    pub fn outline(&self) -> Record {
        let until = self.value_from();
        if self.bytes.len() == until {
            return self.clone();
        }
        Record {
            bytes: Bytes::copy_from_slice(&self.bytes[..until]),
            size: self.size,
        }
    }

    /// Whether the value is here.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.size as usize
    }

    /// Whether both are the same version of the same key, with or without its value.
    pub fn is_same(&self, other: &Record) -> bool {
        self.size == other.size && self.bytes[..self.value_from()] == other.bytes[..other.value_from()]
    }

    pub fn revision(&self) -> u64 {
        u64::from_be_bytes(self.field(0))
    }

    pub fn created(&self) -> u64 {
        u64::from_be_bytes(self.field(8))
    }

    pub fn position(&self) -> u32 {
        u32::from_be_bytes(self.field(POSITION))
    }

    pub fn is_removal(&self) -> bool {
        self.created() == 0
    }

    pub fn key(&self) -> &[u8] {
        &self.bytes[HEADER..self.value_from()]
    }

    pub fn key_bytes(&self) -> Bytes {
        self.bytes.slice(HEADER..self.value_from())
    }

    /// The record as it is kept on disk, if it is whole.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Reads a record as it was kept on disk; `None` where it is none.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        Record::read_outline(bytes).map(|outline| Record { bytes: Bytes::copy_from_slice(bytes), ..outline })
    }

    /// Reads a record as it was kept on disk, and leaves its value there; `None` where it is none.
    pub fn read_outline(bytes: &[u8]) -> Option<Record> {
        let length = bytes.get(KEY_LENGTH..KEY_LENGTH + 4)?.try_into().ok()?;
        let value_from = HEADER.checked_add(u32::from_be_bytes(length) as usize)?;
        let outline = Bytes::copy_from_slice(bytes.get(..value_from)?);
        let record = Record { bytes: outline, size: u32::try_from(bytes.len()).ok()? };
        let stamp = record.revision_at().map(|at| at + record.revision().to_string().len());
        let is_possible = stamp.unwrap_or(0) <= bytes.len() - value_from && record.created() <= record.revision();
        is_possible.then_some(record)
    }

    /// How long the record is with its value.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// What a reader gets; `None` where the value is not here.
    pub fn entry(&self) -> Option<Entry> {
        let entry = || Entry {
            key: self.key_bytes(),
            value: self.bytes.slice(self.value_from()..),
            revision: self.revision(),
            revision_at: self.revision_at(),
            created: self.created(),
        };
        self.is_whole().then(entry)
    }

    fn revision_at(&self) -> Option<usize> {
        let stamp = u32::from_be_bytes(self.field(20));
        (stamp != UNSTAMPED).then_some(stamp as usize)
    }

    fn value_from(&self) -> usize {
        HEADER + u32::from_be_bytes(self.field(KEY_LENGTH)) as usize
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..at + N].try_into().expect("a record has a header")
    }
}

/// Writes a version into memory that `take` gives.
fn write(place: Place, key: &[u8], stamp: u32, value: &[&[u8]], take: impl FnOnce(usize) -> BytesMut) -> BytesMut {
    let [revision, created] = [place.revision, place.created].map(u64::to_be_bytes);
    let [length, stamp, position] = [key.len() as u32, stamp, place.position].map(u32::to_be_bytes);
    let header: [&[u8]; 6] = [&revision, &created, &length, &stamp, &position, key];
    let mut bytes = take(HEADER + key.len() + value.iter().map(|part| part.len()).sum::<usize>());
    let mut rest = &mut bytes[..];
    for part in header.iter().chain(value) {
        let (place, after) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = after;
    }
    bytes
}

/// A version whose place is not known yet.
pub(crate) struct Draft {
    bytes: BytesMut,
    /// Where the revision is written, and how many digits there are for it.
    stamp: Option<(usize, usize)>,
}

impl Draft {
    /// Drafts a version that will probably have this revision, in memory that `take` gives.
    pub fn of(key: &[u8], value: &Value, revision: u64, take: impl FnOnce(usize) -> BytesMut) -> Draft {
        let place = Place { revision, created: revision, position: 0 };
        let Some(at) = value.revision_at else {
            let bytes = write(place, key, UNSTAMPED, &[&value.bytes], take);
            return Draft { bytes, stamp: None };
        };
        let ((before, after), digits) = (value.bytes.split_at(at), revision.to_string());
        let bytes = write(place, key, at as u32, &[before, digits.as_bytes(), after], take);
        Draft { bytes, stamp: Some((HEADER + key.len() + at, digits.len())) }
    }

    pub fn finish(mut self, place: Place) -> Record {
        self.bytes[..8].copy_from_slice(&place.revision.to_be_bytes());
        self.bytes[8..KEY_LENGTH].copy_from_slice(&place.created.to_be_bytes());
        self.bytes[POSITION..HEADER].copy_from_slice(&place.position.to_be_bytes());
        if let Some((at, digits)) = self.stamp {
            let revision = place.revision.to_string();
            if revision.len() == digits {
                self.bytes[at..at + digits].copy_from_slice(revision.as_bytes());
            } else {
                let parts = [&self.bytes[..at], revision.as_bytes(), &self.bytes[at + digits..]];
                self.bytes = BytesMut::from(&parts.concat()[..]);
            }
        }
        Record { size: self.bytes.len() as u32, bytes: self.bytes.freeze() }
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
        let entry = stamped(12).entry().unwrap();
        assert_eq!(entry.value, "{\"rv\":\"12\"}");
        assert_eq!((entry.revision, entry.revision_at, entry.created), (12, Some(7), 3));
    }

    #[test]
    fn a_draft_is_finished_with_more_or_fewer_digits_than_it_was_made_for() {
        let value = Value::stamped(&b"{\"rv\":\"\"}"[..], 7);
        for revision in [9, 10, 99, 100] {
            let place = Place { revision, created: 3, position: 1 };
            let record = Draft::of(b"/a", &value, 10, BytesMut::zeroed).finish(place);
            assert_eq!(record.entry().unwrap().value, format!("{{\"rv\":\"{revision}\"}}"));
            assert_eq!((record.revision(), record.created(), record.position()), (revision, 3, 1));
            assert_eq!(Record::read(record.bytes()), Some(record));
        }
    }

    #[test]
    fn a_removed_entry_names_the_revision_of_its_removal() {
        let entry = stamped(99).entry().unwrap().removed_at(100);
        assert_eq!(entry.value, "{\"rv\":\"100\"}");
        assert_eq!((entry.revision, entry.created), (100, 3));
    }

    #[test]
    fn an_outline_is_the_same_version_without_its_value() {
        let (record, outline) = (stamped(12), stamped(12).outline());
        assert!(outline.is_same(&record) && !outline.is_whole());
        assert_eq!((outline.entry(), outline.key(), outline.size()), (None, record.key(), record.size()));
        assert_eq!(Record::read_outline(record.bytes()), Some(outline));
        assert!(!stamped(13).is_same(&record));
    }

    #[test]
    fn a_stamp_outside_of_its_value_is_refused() {
        let key = Bytes::from("/a");
        let error = Record::check(&key, &Value::stamped("abc", 4)).unwrap_err();
        assert_eq!(error.to_string(), "commit /a: the revision belongs at byte 4 of a value of 3");
        assert!(Record::check(&key, &Value::stamped("abc", 3)).is_ok());
    }
}
