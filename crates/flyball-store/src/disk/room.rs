//! Room in the engine's journal ahead of the writer: a flush that need not find blocks on the disk for what it flushes takes
//! half the time. Only zeros are written, and only over zeros, so that nothing depends on it.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// So long the engine makes a new journal, at first without any blocks.
const JOURNAL: u64 = 64 << 20;

/// So much room is made at once.
const AHEAD: usize = 256 << 10;

static ZEROS: [u8; AHEAD] = [0; AHEAD];

/// Larger writes are not worth it: what is saved is spent on the zeros.
const LARGE: u64 = 64 << 10;

/// The journal that is being written, and how far there is room in it.
pub(crate) struct Room {
    engine: PathBuf,
    journal: u64,
    /// Whether the journal is one that was made since the store was opened. The engine appends to an older one, which must
    /// end where its last write does.
    is_new: bool,
    /// Where the writer is, roughly.
    position: u64,
    until: u64,
}

impl Room {
    /// Of a store that was just made.
    pub fn of_new(engine: &Path) -> Room {
        Room {
            engine: engine.to_owned(),
            journal: 0,
            is_new: true,
            position: 0,
            until: 0,
        }
    }

    /// Of a store that was just opened and whose last journal has this number.
    pub fn after(engine: &Path, journal: u64) -> Room {
        Room { journal, is_new: false, ..Room::of_new(engine) }
    }

    /// Makes room, if it is time for that after so many bytes were written. Nothing may be written to the journal meanwhile.
    pub fn advance(&mut self, written: u64) {
        self.position += written;
        let is_far = self.is_new && self.position + AHEAD as u64 / 2 < self.until;
        if written > LARGE || is_far {
            return;
        }
        // Without room everything is as it was, only slower.
        self.make().ok();
    }

    fn make(&mut self) -> io::Result<()> {
        if self.path(self.journal + 1).try_exists()? {
            *self = Room {
                journal: self.journal + 1,
                is_new: true,
                ..Room::of_new(&self.engine)
            };
        }
        let from = self.until.max(self.position / AHEAD as u64 * AHEAD as u64);
        if !self.is_new || from + AHEAD as u64 > JOURNAL {
            return Ok(());
        }
        self.until = from + AHEAD as u64;
        let file = File::options().read(true).write(true).open(self.path(self.journal))?;
        if file.metadata()?.len() != JOURNAL {
            return Ok(());
        }
        let mut bytes = vec![0; AHEAD];
        file.read_exact_at(&mut bytes, from)?;
        if bytes == ZEROS {
            file.write_all_at(&ZEROS, from)?;
        }
        Ok(())
    }

    fn path(&self, journal: u64) -> PathBuf {
        self.engine.join(format!("{journal}.jnl"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::MetadataExt};

    /// How many bytes of a file have blocks.
    fn blocks(path: &Path) -> u64 {
        fs::metadata(path).unwrap().blocks() * 512
    }

    fn journal(directory: &Path, number: u64, length: u64) -> PathBuf {
        let path = directory.join(format!("{number}.jnl"));
        File::create(&path).unwrap().set_len(length).unwrap();
        path
    }

    #[test]
    fn room_is_made_ahead_of_the_writer_and_in_the_next_journal() {
        let directory = tempfile::tempdir().unwrap();
        let first = journal(directory.path(), 0, JOURNAL);
        let mut room = Room::of_new(directory.path());
        room.advance(100);
        assert_eq!(blocks(&first), AHEAD as u64);
        (0..3).for_each(|_| room.advance(LARGE));
        assert_eq!(blocks(&first), 2 * AHEAD as u64);
        let second = journal(directory.path(), 1, JOURNAL);
        (0..20).for_each(|_| room.advance(LARGE));
        assert!(blocks(&second) > 0);
    }

    #[test]
    fn what_is_written_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = journal(directory.path(), 0, JOURNAL);
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(b"acknowledged", 3 * AHEAD as u64 - 5).unwrap();
        let before = fs::read(&path).unwrap();
        let mut room = Room::of_new(directory.path());
        (0..100).for_each(|_| room.advance(LARGE));
        assert!(fs::read(&path).unwrap() == before && blocks(&path) > 4 * AHEAD as u64);
    }

    #[test]
    fn a_journal_that_is_appended_to_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (older, cut) = (journal(directory.path(), 3, JOURNAL), journal(directory.path(), 0, 100));
        Room::after(directory.path(), 3).advance(100);
        Room::of_new(directory.path()).advance(100);
        assert_eq!((blocks(&older), fs::metadata(cut).unwrap().len()), (0, 100));
    }
}
