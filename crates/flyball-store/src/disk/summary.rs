//! What a log must hold, written with every batch and compared when it is opened, so that no record gets lost unnoticed.

use crate::record::Record;
use xxhash_rust::xxh3::xxh3_64;

/// The revisions of a log and a sum over its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub revision: u64,
    pub compacted: u64,
    pub records: u64,
    /// The sum of a hash of each record's key.
    pub sum: u64,
}

/// Where something is kept: a revision and a position in its commit.
pub(crate) type Key = [u8; 12];

/// Where a record would be after all others of its commit: no commit has so many.
const LAST: [u8; 4] = [u8::MAX; 4];

impl Summary {
    /// Where the summary is kept: after the records of its revision. It moves on with the records, because a key that
    /// stayed in one place would make all tables of the engine overlap.
    pub fn key(&self) -> Key {
        summary_key(self.revision)
    }

    pub fn is_at(key: &[u8]) -> bool {
        key.ends_with(&LAST)
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.revision, self.compacted, self.records, self.sum].map(u64::to_be_bytes).concat()
    }

    pub fn read(bytes: &[u8]) -> Option<Summary> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let field = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Some(Summary {
            revision: field(0),
            compacted: field(8),
            records: field(16),
            sum: field(24),
        })
    }

    /// The summary in words, for the seal of a closed store.
    pub fn text(&self) -> String {
        let Summary { revision, compacted, records, sum } = self;
        format!("revision {revision}, compacted {compacted}, records {records}, sum {sum:016x}\n")
    }

    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        self.sum = self.sum.wrapping_add(xxh3_64(&record_key(record)));
    }

    pub fn remove(&mut self, record: &Record) {
        self.records -= 1;
        self.sum = self.sum.wrapping_sub(xxh3_64(&record_key(record)));
    }
}

/// Where the summary of a revision is kept.
pub(crate) fn summary_key(revision: u64) -> Key {
    key(revision, LAST)
}

/// Where a record is kept.
pub(crate) fn record_key(record: &Record) -> Key {
    key(record.revision(), record.position().to_be_bytes())
}

fn key(revision: u64, position: [u8; 4]) -> Key {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&revision.to_be_bytes());
    key[8..].copy_from_slice(&position);
    key
}
