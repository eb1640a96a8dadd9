//! fjall as the store uses it: one keyspace of records by revision, one with the checkpoint. Writes are the writer's; values
//! are read beside it, until the store is closed. After a failed write fjall is reopened in place.

use super::checkpoint::{CHECKPOINT_KEY, Checkpoint, record_key};
use crate::{Error, Result, read_snapshot::ReadSnapshot, record::Record};
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot,
    config::{BlockSizePolicy, FilterPolicy, PinningPolicy},
};
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

/// Records at most this many revisions apart are read with one scan, if they are at least `MIN_SCAN`.
const MAX_SCAN_GAP: u64 = 8;
const MIN_SCAN: usize = 16;

/// The memory of fjall's block cache. It is small, because values that are read are kept by the value cache.
const BLOCK_CACHE_BYTES: u64 = 4 << 20;

/// The size at which a memtable is flushed: memtables keep values in memory that the value cache has evicted.
const MEMTABLE_BYTES: u64 = 8 << 20;

/// The same for the checkpoint's keyspace. A journal is deleted only when both keyspaces are flushed.
const CHECKPOINT_MEMTABLE_BYTES: u64 = 1 << 20;

/// The most open table files that fjall keeps.
const MAX_OPEN_TABLES: usize = 128;

/// fjall, and its data directory for error messages.
pub(crate) struct Engine {
    path: PathBuf,
    store: PathBuf,
    phase: RwLock<Phase>,
}

enum Phase {
    Open(Opened),
    /// fjall is closed until the writer has reopened it.
    Reopening {
        generation: u64,
    },
    Closed,
}

/// An open fjall database.
struct Opened {
    database: Database,
    records: Keyspace,
    checkpoint: Keyspace,
    /// How many times it was reopened.
    generation: u64,
}

impl Opened {
    fn open(store: &Path, generation: u64) -> fjall::Result<Opened> {
        // fjall panics without it.
        std::env::current_dir().map_err(|_| io::Error::other("the current directory no longer exists"))?;
        // With several workers one would busy-wait while another compacts.
        let database = Database::builder(store)
            .cache_size(BLOCK_CACHE_BYTES)
            .max_cached_files(Some(MAX_OPEN_TABLES))
            .worker_threads(1)
            .open()?;
        // A record is in one table only, so a filter would answer nothing that the index does not.
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES)
                .data_block_size_policy(BlockSizePolicy::all(8 << 10))
                .filter_policy(FilterPolicy::disabled())
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_block_pinning_policy(PinningPolicy::all(false))
        };
        let records = database.keyspace("records", options)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(CHECKPOINT_MEMTABLE_BYTES);
        let checkpoint = database.keyspace("checkpoint", options)?;
        Ok(Opened { database, records, checkpoint, generation })
    }
}

/// The values on disk at one moment. Records removed afterwards stay readable until it is dropped, or fjall is reopened.
pub(crate) struct EngineSnapshot {
    engine: Arc<Engine>,
    at: Option<(u64, Snapshot)>,
}

impl Engine {
    /// Opens the database in `store`, which is part of the data directory `path`.
    pub fn open(path: &Path, store: &Path) -> fjall::Result<Engine> {
        let phase = RwLock::new(Phase::Open(Opened::open(store, 0)?));
        Ok(Engine { path: path.to_owned(), store: store.to_owned(), phase })
    }

    /// Takes a snapshot of the values on disk.
    pub fn snapshot(self: &Arc<Self>) -> ReadSnapshot {
        let at = match &*self.phase() {
            Phase::Open(opened) => Some((opened.generation, opened.database.snapshot())),
            Phase::Reopening { .. } => None,
            Phase::Closed => return ReadSnapshot::default(),
        };
        ReadSnapshot::new(EngineSnapshot { engine: self.clone(), at })
    }

    /// Writes and removes records together with the checkpoint that they lead to; returns when all of it is durable.
    pub fn write<'a>(
        &self,
        records: impl IntoIterator<Item = &'a Record>,
        removed: &[Record],
        checkpoint: &Checkpoint,
    ) -> fjall::Result<()> {
        self.with(|opened| {
            let mut batch = opened.database.batch().durability(Some(PersistMode::SyncData));
            for record in records {
                batch.insert(&opened.records, record_key(record), record.bytes().clone());
            }
            for record in removed {
                batch.remove(&opened.records, record_key(record));
            }
            batch.insert(&opened.checkpoint, CHECKPOINT_KEY, checkpoint.bytes());
            batch.commit()
        })
    }

    /// Reads the checkpoint.
    pub fn checkpoint(&self) -> fjall::Result<Option<Checkpoint>> {
        let found = self.with(|opened| opened.checkpoint.get(CHECKPOINT_KEY))?;
        Ok(found.and_then(|bytes| Checkpoint::read(&bytes)))
    }

    /// Every record in the order of revisions, by key.
    pub fn records(&self) -> fjall::Result<fjall::Iter> {
        self.with(|opened| Ok(opened.records.iter()))
    }

    /// Whether fjall is open, and neither a write nor its background work has failed.
    pub fn is_healthy(&self) -> bool {
        self.with(|opened| opened.database.persist(PersistMode::Buffer)).is_ok()
    }

    /// Closes fjall to reopen it; readers get an error until then.
    pub fn suspend(&self) {
        let mut phase = self.phase.write().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Open(Opened { generation, .. }) = *phase {
            let opened = std::mem::replace(&mut *phase, Phase::Reopening { generation });
            drop(phase);
            // This waits for fjall's worker.
            drop(opened);
        }
    }

    /// Opens fjall again.
    pub fn resume(&self) -> fjall::Result<()> {
        let Phase::Reopening { generation } = *self.phase() else {
            return Ok(());
        };
        let opened = Opened::open(&self.store, generation + 1)?;
        *self.phase.write().unwrap_or_else(PoisonError::into_inner) = Phase::Open(opened);
        Ok(())
    }

    /// Waits for reads in flight, and closes fjall.
    pub fn close(&self) {
        let mut phase = self.phase.write().unwrap_or_else(PoisonError::into_inner);
        let closed = std::mem::replace(&mut *phase, Phase::Closed);
        drop(phase);
        drop(closed);
    }

    fn phase(&self) -> RwLockReadGuard<'_, Phase> {
        self.phase.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, run: impl FnOnce(&Opened) -> fjall::Result<T>) -> fjall::Result<T> {
        match &*self.phase() {
            Phase::Open(opened) => run(opened),
            _ => Err(io::Error::other("the store could not be reopened yet").into()),
        }
    }

    /// How many snapshots are open; none while the database is closed.
    pub fn open_snapshots(&self) -> usize {
        self.with(|opened| Ok(opened.database.supervisor.snapshot_tracker.open_snapshots()))
            .unwrap_or_default()
    }
}

impl EngineSnapshot {
    /// Reads the value of a header-only record.
    pub fn read(&self, header: &Record) -> Result<Record> {
        let found = self.with(|records, at| at.get(records, record_key(header)))?;
        self.record(header, found.as_deref())
    }

    /// Reads the values of many such records; those that were written one after the other are read with one scan.
    pub fn read_all(&self, headers: &[&Record]) -> Result<Vec<Record>> {
        let mut order: Vec<usize> = (0..headers.len()).collect();
        order.sort_unstable_by_key(|at| record_key(headers[*at]));
        let mut found = vec![None; headers.len()];
        let is_near = |a: &usize, b: &usize| headers[*b].revision() - headers[*a].revision() <= MAX_SCAN_GAP;
        for run in order.chunk_by(is_near) {
            let wanted: Vec<&Record> = run.iter().map(|at| headers[*at]).collect();
            let records = if wanted.len() < MIN_SCAN {
                wanted.iter().map(|header| self.read(header)).collect::<Result<_>>()?
            } else {
                self.scan(&wanted)?
            };
            run.iter().zip(records).for_each(|(at, record)| found[*at] = Some(record));
        }
        found.into_iter().collect::<Option<_>>().ok_or(Error::Closed)
    }

    /// Reads records in the order of their keys, from the first to the last, and those between them.
    fn scan(&self, headers: &[&Record]) -> Result<Vec<Record>> {
        let keys = record_key(headers[0])..=record_key(headers[headers.len() - 1]);
        let found = self.with(|records, at| {
            let pairs = at.range(records, keys).map(|pair| pair.into_inner());
            pairs.collect::<fjall::Result<HashMap<_, _>>>()
        })?;
        let find = |header: &&Record| self.record(header, found.get(&record_key(header)[..]).map(|bytes| &bytes[..]));
        headers.iter().map(find).collect()
    }

    /// Reads from the snapshot; from the latest state where fjall was reopened since, as records never change.
    fn with<T>(&self, read: impl FnOnce(&Keyspace, &Snapshot) -> fjall::Result<T>) -> Result<T> {
        if let Phase::Closed = &*self.engine.phase() {
            return Err(Error::Closed);
        }
        let found = self.engine.with(|opened| match &self.at {
            Some((generation, at)) if *generation == opened.generation => read(&opened.records, at),
            _ => read(&opened.records, &opened.database.snapshot()),
        });
        found.map_err(|error| Error::read(&self.engine.path, error))
    }

    fn record(&self, header: &Record, bytes: Option<&[u8]>) -> Result<Record> {
        let record = bytes.and_then(Record::read).filter(|record| record.is_same(header));
        record.ok_or_else(|| Error::Damaged {
            path: self.engine.path.clone(),
            reason: "a record cannot be read".to_owned(),
        })
    }
}
