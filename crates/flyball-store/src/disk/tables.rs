//! The engine's tables: everything that has left the journal. A whole file of the journal is taken in at once, or not.

use super::{
    pending::Pending,
    summary::{Summary, summary_key},
};
use crate::courtesy::Courtesy;
use fjall::{
    Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode,
    config::{BlockSizePolicy, FilterPolicy, PinningPolicy},
};
use std::path::Path;

/// So many summaries that no longer hold are left where they are, before all of them are removed.
pub(crate) const MOST_STALE: usize = if cfg!(test) { 8 } else { 1_024 };

/// So many are taken in before others may use the processor.
const AT_ONCE: usize = 16;

pub(crate) struct Tables {
    pub database: Database,
    pub records: Keyspace,
    /// What the tables hold; it is their last record.
    pub summary: Summary,
    /// The revisions of summaries that no longer hold. To remove each with the next would make all tables overlap, which
    /// then have to be merged.
    pub stale: Vec<u64>,
}

impl Tables {
    pub fn create(path: &Path) -> fjall::Result<Tables> {
        let (database, records) = start(path)?;
        // The engine notes its keyspaces in a journal of its own.
        database.persist(PersistMode::SyncAll)?;
        let (summary, stale) = (Summary::default(), Vec::new());
        let mut tables = Tables { database, records, summary, stale };
        tables.take_in(&Pending::default(), summary)?;
        Ok(tables)
    }

    /// Opens tables that were verified; `None` where they do not end with what they hold.
    pub fn open(path: &Path) -> fjall::Result<Option<Tables>> {
        let (database, records) = start(path)?;
        let last = records.last_key_value().map(Guard::value).transpose()?;
        let summary = last.as_deref().and_then(Summary::read);
        let stale = Vec::new();
        Ok(summary.map(|summary| Tables { database, records, summary, stale }))
    }

    /// Takes in what led to a summary, and returns when it is on disk.
    pub fn take_in(&mut self, pending: &Pending, summary: Summary) -> fjall::Result<()> {
        let mut changes = pending.changes();
        if summary.revision != self.summary.revision {
            self.stale.push(self.summary.revision);
        }
        if self.stale.len() >= MOST_STALE {
            changes.extend(self.stale.drain(..).map(|revision| (summary_key(revision), None)));
            changes.sort_unstable_by_key(|(key, _)| *key);
        }
        let mut courtesy = Courtesy::new();
        let mut ingestion = self.records.start_ingestion()?;
        for (at, (key, value)) in changes.into_iter().enumerate() {
            match value {
                Some(value) => ingestion.write(key, value)?,
                None => ingestion.write_tombstone(key)?,
            }
            if at % AT_ONCE == 0 {
                courtesy.give_way();
            }
        }
        ingestion.write(summary.key(), summary.bytes())?;
        ingestion.finish()?;
        self.summary = summary;
        Ok(())
    }
}

/// Starts the engine. Its cache is small, because values that are read are kept in memory by themselves. A record is in one
/// table only, which needs no filter to be found. Of several workers one would turn around without rest while another
/// compacts.
fn start(path: &Path) -> fjall::Result<(Database, Keyspace)> {
    let database = Database::builder(path).cache_size(4 << 20).worker_threads(1).open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .data_block_size_policy(BlockSizePolicy::all(8 << 10))
            .filter_policy(FilterPolicy::disabled())
            .index_block_pinning_policy(PinningPolicy::all(true))
            .filter_block_pinning_policy(PinningPolicy::all(false))
    };
    let records = database.keyspace("records", options)?;
    Ok((database, records))
}
