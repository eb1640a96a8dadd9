//! One version of one key in one allocation, which index, history, disk and readers share; and the stamping of revisions.

use crate::{Entry, Error, Result, Value};
use bytes::Bytes;

/// A stored version: header, key and value. The header is revision, created, length of the key, offset of the stamp and
/// position in the commit; `created` is 0 for a removal. A header-only record is without the value, which is on disk then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    bytes: Bytes,
    /// The length in bytes with the value.
    size: u32,
}

const KEY_LENGTH: usize = 8 + 8;
const POSITION: usize = KEY_LENGTH + 4 + 4;
const HEADER: usize = POSITION + 4;
const UNSTAMPED: u32 = u32::MAX;

/// The most bytes that key and value may have together.
const MAX_BYTES: usize = 1 << 30;

/// What identifies a version: its revision, the revision that created its key, and its position in the commit.
#[derive(Clone, Copy)]
pub(crate) struct RecordId {
    pub revision: u64,
    pub created: u64,
    pub position: u32,
}

impl Record {
    /// A version that a put wrote, stamped with its revision where the value asks for that.
    pub fn put(key: &[u8], value: &Value, id: RecordId) -> Record {
        let Some(at) = value.revision_at else {
            return Record::write(id, key, UNSTAMPED, &[&value.bytes]);
        };
        let (before, after) = value.bytes.split_at(at);
        Record::write(id, key, at as u32, &[before, id.revision.to_string().as_bytes(), after])
    }

    /// The record of an entry as it was read.
    pub fn of(entry: &Entry, position: u32) -> Record {
        let id = RecordId { revision: entry.revision, created: entry.created, position };
        let stamp = entry.revision_at.map_or(UNSTAMPED, |at| at as u32);
        Record::write(id, &entry.key, stamp, &[&entry.value])
    }

    pub fn removal(key: &[u8], revision: u64, position: u32) -> Record {
        Record::write(RecordId { revision, created: 0, position }, key, UNSTAMPED, &[])
    }

    /// Refuses what [`Record::put`] could not write.
    pub fn check(key: &Bytes, value: &Value) -> Result<()> {
        let length = key.len().saturating_add(value.bytes.len());
        if length > MAX_BYTES {
            return Err(Error::TooLarge { key: key.slice(..key.len().min(256)), length });
        }
        match value.revision_at {
            Some(revision_at) if revision_at > value.bytes.len() => {
                Err(Error::StampOutside { key: key.clone(), revision_at, length: value.bytes.len() })
            }
            _ => Ok(()),
        }
    }

    fn write(id: RecordId, key: &[u8], stamp: u32, value: &[&[u8]]) -> Record {
        let size = HEADER + key.len() + value.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&id.revision.to_be_bytes());
        bytes.extend_from_slice(&id.created.to_be_bytes());
        bytes.extend_from_slice(&(key.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&stamp.to_be_bytes());
        bytes.extend_from_slice(&id.position.to_be_bytes());
        bytes.extend_from_slice(key);
        value.iter().for_each(|part| bytes.extend_from_slice(part));
        Record { size: size as u32, bytes: bytes.into() }
    }

    /// The same version as another operation of its commit.
    pub fn at(self, position: u32) -> Record {
        let mut bytes = Vec::from(self.bytes);
        bytes[POSITION..HEADER].copy_from_slice(&position.to_be_bytes());
        Record { bytes: bytes.into(), size: self.size }
    }

    /// The same version without its value.
    pub fn header_only(&self) -> Record {
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
    pub fn has_value(&self) -> bool {
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

    /// The record as it is kept on disk, if it has its value.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Reads a record as it was kept on disk; `None` where it is none.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        Record::read_header(bytes).map(|header| Record { bytes: Bytes::copy_from_slice(bytes), ..header })
    }

    /// Reads a record as it was kept on disk, and leaves its value there; `None` where it is none.
    pub fn read_header(bytes: &[u8]) -> Option<Record> {
        let length = bytes.get(KEY_LENGTH..KEY_LENGTH + 4)?.try_into().ok()?;
        let value_from = HEADER.checked_add(u32::from_be_bytes(length) as usize)?;
        let header = Bytes::copy_from_slice(bytes.get(..value_from)?);
        let record = Record { bytes: header, size: u32::try_from(bytes.len()).ok()? };
        let stamp = record.revision_at().map(|at| at + record.revision().to_string().len());
        let is_possible = stamp.unwrap_or(0) <= bytes.len() - value_from && record.created() <= record.revision();
        is_possible.then_some(record)
    }

    /// The length in bytes of the record with its value.
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
        self.has_value().then(entry)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(revision: u64) -> Record {
        let value = Value::stamped(&b"{\"rv\":\"\"}"[..], 7);
        Record::put(b"/a", &value, RecordId { revision, created: 3, position: 0 })
    }

    #[test]
    fn a_header_is_the_same_version_without_its_value() {
        let (record, header) = (stamped(12), stamped(12).header_only());
        assert!(header.is_same(&record) && !header.has_value());
        assert_eq!((header.entry(), header.key(), header.size()), (None, record.key(), record.size()));
        assert_eq!(Record::read_header(record.bytes()), Some(header));
        assert!(!stamped(13).is_same(&record));
    }
}
