//! What is kept on disk: every record that the latest state or the history needs, by revision, and one line that sums
//! them up. Commits of a batch reach the journal in one atomic write, and tables later.

use super::{
    directory::Directory,
    journal::{Journal, LONG, Spare},
    mover::Mover,
    pending::Pending,
    recovery::{create, recover, refused, renew},
    summary::{Key, Summary, record_key},
    tables::Tables,
    values::Engine,
};
use crate::Result;
use crate::{core::Core, core::State, history::Change, plan::Plan, record::Record, resident::Residents};
use std::{mem, sync::Arc};

/// A log that was opened and is not written to yet.
pub(crate) struct Opened {
    tables: Tables,
    journal: Journal,
    engine: Arc<Engine>,
}

/// The log of a data directory.
pub(crate) struct Log {
    summary: Summary,
    journal: Journal,
    /// What the journal's file holds.
    pending: Arc<Pending>,
    engine: Arc<Engine>,
    mover: Mover,
}

impl Opened {
    /// Stops the engine; says what there is to be found when it starts again.
    pub fn close(self) -> String {
        self.tables.summary.text()
    }
}

impl Log {
    /// Opens the log, verifies all of it, and reads the state that it leads to, of which so many bytes of values will be in
    /// memory; makes an empty one where there is none.
    pub fn open(directory: &Directory, memory: usize) -> Result<(Opened, State)> {
        let (tables, journal, state) = if directory.has_store()? {
            recover(directory)?
        } else {
            let (tables, journal) = directory.create(|| create(directory))?;
            (tables, journal, State::default())
        };
        let (database, records) = (tables.database.clone(), tables.records.clone());
        let engine = Arc::new(Engine::new(directory.path.clone(), database, records));
        let disk = Some((engine.clone(), Residents::new(memory)));
        Ok((Opened { tables, journal, engine }, State { disk, ..state }))
    }

    /// Starts to move what is written to tables, and out of memory where there is no room for it.
    pub fn start(opened: Opened, core: Arc<Core>, directory: &Directory) -> Result<Log> {
        let Opened { tables, journal, engine } = opened;
        let (summary, pending) = (tables.summary, Arc::default());
        engine.add(&pending);
        let mover = Mover::start(tables, core, engine.clone(), directory.journal(), journal.number() + 1);
        let mover = mover.map_err(|source| directory.failed(source))?;
        Ok(Log { summary, journal, pending, engine, mover })
    }

    /// Makes a log of records that are all in the past of a revision, without a history.
    pub fn fill(directory: &Directory, revision: u64, mut next: impl FnMut() -> Result<Option<Record>>) -> Result<()> {
        let (mut tables, journal) = create(directory)?;
        let mut summary = Summary { revision, compacted: revision, ..Summary::default() };
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        for position in 0.. {
            let record = next()?.map(|record| record.at(position));
            let is_last = record.is_none();
            if let Some(record) = record {
                summary.add(&record);
                bytes += record.size();
                chunk.push(record);
            }
            if is_last || bytes as u64 >= LONG {
                chunk.sort_unstable_by_key(record_key);
                let pending = Pending::default();
                mem::take(&mut chunk).into_iter().for_each(|record| pending.put(record));
                tables.take_in(&pending, summary).map_err(|error| refused(directory, error))?;
                bytes = 0;
            }
            if is_last {
                break;
            }
        }
        renew(directory, journal.number() + 1, &summary)
            .and_then(|_| journal.end().remove())
            .map_err(|source| directory.failed(source))
    }

    /// Stops the engine; says what there is to be found when it starts again.
    pub fn close(self) -> String {
        self.summary.text()
    }

    /// The number of the file that is written.
    #[cfg(test)]
    pub fn number(&self) -> u64 {
        self.journal.number()
    }

    /// Moves everything from the journal to tables, and frees what is not needed there.
    #[cfg(test)]
    pub fn flush(&mut self) -> fjall::Result<()> {
        let spare = self.mover.spare()?;
        self.rotate(spare)?;
        self.mover.wait();
        self.engine.compact()
    }

    /// Goes on to the next file of the journal, if it is time for that.
    pub fn make_room(&mut self) -> fjall::Result<()> {
        if self.journal.is_full() {
            let spare = self.mover.spare()?;
            return self.rotate(spare);
        }
        if self.journal.is_half_full() {
            self.mover.prepare();
        }
        match self.journal.is_nearly_full().then(|| self.mover.try_spare()).flatten() {
            Some(spare) => self.rotate(spare?),
            None => Ok(()),
        }
    }

    fn rotate(&mut self, spare: Spare) -> fjall::Result<()> {
        let journal = mem::replace(&mut self.journal, Journal::start(spare, &self.summary)?);
        let pending = mem::take(&mut self.pending);
        self.engine.add(&self.pending);
        self.mover.take(pending, journal.end(), self.summary);
        Ok(())
    }

    /// Writes planned changes and removes what only the history needed that is gone up to `cut`; returns when it is on disk.
    pub fn write(&mut self, plan: &Plan, cut: u64, gone: &[Change]) -> fjall::Result<()> {
        let revision = plan.revision().unwrap_or(self.summary.revision);
        let mut summary = Summary { revision, compacted: cut, ..self.summary };
        plan.changes.iter().for_each(|change| summary.add(&change.record));
        let removed: Vec<Key> = gone
            .iter()
            .flat_map(|change| {
                let removal = Some(&change.record).filter(|record| record.is_removal());
                change.previous.iter().chain(removal)
            })
            .inspect(|record| summary.remove(record))
            .map(record_key)
            .collect();
        self.journal.write(|draft| {
            plan.changes
                .iter()
                .for_each(|change| draft.put(record_key(&change.record), change.record.bytes()));
            removed.iter().for_each(|key| draft.remove(*key));
            draft.put(summary.key(), &summary.bytes());
        })?;
        self.pending.add(&plan.changes, removed);
        self.summary = summary;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Place;
    use crate::{
        Options, Range, Value,
        disk::{damage, fill, replay, tables::MOST_STALE, writer::Writer},
    };
    use std::fs;

    /// How many summaries there are.
    fn summaries(log: &Log) -> usize {
        let keys = log.engine.keys();
        keys.iter().filter(|key| Summary::is_at(key)).count()
    }

    /// What is at a key.
    fn value(writer: &Writer, key: &str) -> bytes::Bytes {
        writer.desk.core.get(key.as_bytes()).unwrap().unwrap().value
    }

    #[test]
    fn values_are_found_wherever_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { memory_bytes: 0, ..Options::default() };
        let mut writer = damage::open_with(directory.path(), options);
        let big = "b".repeat(100_000);
        let names: Vec<_> = (0..100).map(|n| format!("/{n:03}")).collect();
        for name in &names {
            damage::put(&mut writer, name, &format!("{name}{big}"));
            writer.make_room();
        }
        assert!(names.iter().all(|name| value(&writer, name) == format!("{name}{big}")));
        let found = writer
            .desk
            .core
            .find(Range::default())
            .and_then(|found| writer.desk.core.read(&found))
            .unwrap();
        assert!(found.entries.iter().all(|entry| entry.value.len() == big.len() + 4) && found.entries.len() == 100);
        writer.close();
        let writer = damage::open_with(directory.path(), options);
        assert!(names.iter().all(|name| value(&writer, name) == format!("{name}{big}")));
    }

    #[test]
    fn a_log_is_filled_with_more_than_fits_into_memory_in_any_order_of_revisions() {
        let directory = tempfile::tempdir().unwrap();
        let big = "b".repeat(100_000);
        let mut left = (0..50_u64).map(|n| {
            let revision = n * 31 % 50 + 1;
            let place = Place { revision, created: revision, position: 0 };
            Ok(Record::put(format!("/{n:02}").as_bytes(), &Value::plain(format!("{n:02}{big}")), place))
        });
        fill(directory.path(), 60, || left.next().transpose()).unwrap();
        let writer = damage::open(directory.path());
        assert!((0..50).all(|n| value(&writer, &format!("/{n:02}")) == format!("{n:02}{big}")));
        assert_eq!(writer.desk.core.revision(), 60);
    }

    #[test]
    fn a_crash_at_any_moment_of_the_move_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (path, journal) = (directory.path().join("store"), directory.path().join("store/journal"));
        let mut writer = damage::open(directory.path());
        damage::put(&mut writer, "/a", "one");
        damage::put(&mut writer, "/a", "two");
        // What the journal was before it was moved comes back beside what it became.
        let before = fs::read(journal.join("0.jnl")).unwrap();
        writer.log.flush().unwrap();
        damage::put(&mut writer, "/b", "three");
        drop(writer);
        fs::write(journal.join("0.jnl"), &before).unwrap();
        let writer = damage::open(directory.path());
        assert_eq!(
            (value(&writer, "/a"), value(&writer, "/b"), writer.desk.core.revision()),
            ("two".into(), "three".into(), 3)
        );
        drop(writer);
        // Everything is in tables, and the next file of the journal was not made.
        let mut writer = damage::open(directory.path());
        damage::put(&mut writer, "/b", "four");
        drop(writer);
        let (last, file) = replay::files(&journal).ok().unwrap().pop().unwrap();
        let held = fs::read(&file).unwrap();
        drop(damage::open(directory.path()));
        assert!(!file.exists());
        fs::remove_dir_all(&journal).unwrap();
        fs::create_dir(&journal).unwrap();
        fs::write(journal.join(format!("{last}.jnl")), held).unwrap();
        let writer = damage::open(directory.path());
        assert_eq!((value(&writer, "/b"), writer.desk.core.revision()), ("four".into(), 4));
        drop(writer);
        // Without any of it something may be missing.
        fs::remove_dir_all(&journal).unwrap();
        fs::create_dir(&journal).unwrap();
        let refused = Writer::open(directory.path().to_owned(), Options::default()).err().unwrap().to_string();
        assert!(refused.contains("what was written last is missing"), "{refused} {}", path.display());
    }

    #[test]
    fn summaries_that_no_longer_hold_are_few_also_after_opening_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        let mut most = 0;
        for n in 0..MOST_STALE + 3 {
            damage::put(&mut writer, &format!("/{n}"), "v");
            writer.log.flush().unwrap();
            most = most.max(summaries(&writer.log));
        }
        assert_eq!((most, summaries(&writer.log)), (MOST_STALE, 4));
        writer.close();
        let mut writer = damage::open(directory.path());
        for n in 0..MOST_STALE - 3 {
            damage::put(&mut writer, &format!("/{n}"), "w");
            writer.log.flush().unwrap();
        }
        assert_eq!(summaries(&writer.log), 1);
    }
}
