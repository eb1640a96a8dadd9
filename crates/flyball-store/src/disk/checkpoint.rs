//! The consistency checkpoint: what the records keyspace must hold, written with every batch and compared at open, so that no
//! record is lost unnoticed. It sums the keys of the records; their contents have fjall's block checksums.

use crate::record::Record;
use xxhash_rust::xxh3::xxh3_64;

/// The revisions of a log, and the number of its records with a sum over their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub revision: u64,
    pub compacted: u64,
    pub records: u64,
    /// The wrapping sum of a hash of each record's key.
    pub sum: u64,
}

/// The key of the checkpoint in its keyspace. No record has a key of this length.
pub(crate) const CHECKPOINT_KEY: &[u8] = b"checkpoint";

impl Checkpoint {
    pub fn bytes(&self) -> Vec<u8> {
        [self.revision, self.compacted, self.records, self.sum].map(u64::to_be_bytes).concat()
    }

    pub fn read(bytes: &[u8]) -> Option<Checkpoint> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let field = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Some(Checkpoint {
            revision: field(0),
            compacted: field(8),
            records: field(16),
            sum: field(24),
        })
    }

    /// The checkpoint as text, for the note that a clean close leaves.
    pub fn text(&self) -> String {
        format!("{self:?}\n")
    }

    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        self.sum = self.sum.wrapping_add(xxh3_64(&record_key(record)));
    }

    pub fn remove(&mut self, record: &Record) {
        self.records -= 1;
        self.sum = self.sum.wrapping_sub(xxh3_64(&record_key(record)));
    }

    /// Whether it was written after another one of the same log.
    pub fn is_after(&self, other: &Checkpoint) -> bool {
        self.revision > other.revision || self.compacted > other.compacted
    }
}

/// The key of a record on disk: its revision and its position in the commit, so that records are read back in the order in
/// which they were written.
pub(crate) fn record_key(record: &Record) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&record.revision().to_be_bytes());
    key[8..].copy_from_slice(&record.position().to_be_bytes());
    key
}
