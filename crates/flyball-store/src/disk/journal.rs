//! The journal: what is written is durable here, long before the engine has it in its tables. It is one file after the
//! other, each full of zeros when it is made, because a flush that need not find blocks takes half the time, and used again
//! as it is.

use super::{
    block::{BLOCK, Blocks},
    frame::Draft,
    sector::{self, ROOM, SECTOR},
    summary::Summary,
};
use crate::courtesy::Courtesy;
use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// How long a file is. What it holds is in memory, too, until it is in tables.
pub(crate) const LONG: u64 = if cfg!(test) { 1 << 20 } else { 8 << 20 };

/// How long the first file is after opening: a store that is hardly written to needs no more.
pub(crate) const SHORT: u64 = 256 << 10;

#[repr(align(4096))]
struct Zeros([u8; 64 << 10]);

static ZEROS: Zeros = Zeros([0; 64 << 10]);

/// How a file is opened so that a write returns when it is on disk: one call to the system instead of two, for only what is
/// written. It is not the flag of that name in `rustix`, which has the system write the time of each write, too.
#[cfg(target_os = "linux")]
const DURABLE: i32 = libc::O_DSYNC;

/// The file that is written.
pub(crate) struct Journal {
    file: Spare,
    /// How much is in it.
    position: u64,
    sequence: u64,
    draft: Draft,
    blocks: Blocks,
}

/// A file that is ready to be written, or to be used again.
pub(crate) struct Spare {
    pub number: u64,
    file: File,
    path: PathBuf,
    length: u64,
}

impl Spare {
    /// Makes a file of zeros.
    pub fn make(directory: &Path, number: u64, length: u64) -> io::Result<Spare> {
        let path = directory.join(format!("{number}.jnl"));
        let file = File::options().write(true).create_new(true).open(&path)?;
        clear(&file, length)?;
        file.sync_all()?;
        File::open(directory)?.sync_all()?;
        Ok(Spare { number, file: open(&path)?, path, length })
    }

    /// Makes a file that is not needed any more ready under another number, which is higher. What it holds stays, and is
    /// told by its marks from what will be written.
    pub fn again(self, number: u64) -> io::Result<Spare> {
        let directory = self.path.parent().expect("it is in a directory").to_owned();
        if self.length != LONG || self.file.metadata()?.len() != LONG {
            self.remove()?;
            return Spare::make(&directory, number, LONG);
        }
        let path = directory.join(format!("{number}.jnl"));
        fs::rename(&self.path, &path)?;
        // Under its old number what will be written would not be known.
        File::open(&directory)?.sync_all()?;
        Ok(Spare { number, path, ..self })
    }

    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

/// Writes zeros to all of a file.
fn clear(file: &File, length: u64) -> io::Result<()> {
    let mut courtesy = Courtesy::new();
    for at in (0..length).step_by(ZEROS.0.len()) {
        file.write_all_at(&ZEROS.0, at)?;
        courtesy.give_way();
    }
    Ok(())
}

/// Opens a file whose first block has nothing but zeros for writes of whole blocks; they go to the disk without a stop where
/// its file system can do that.
#[cfg(target_os = "linux")]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let open = |flags| File::options().write(true).custom_flags(flags).open(path);
    // Some refuse the flag, and some the write.
    let direct = open(DURABLE | libc::O_DIRECT).and_then(|file| file.write_all_at(&ZEROS.0[..BLOCK], 0).map(|()| file));
    match direct {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => open(DURABLE),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

impl Journal {
    /// Starts a file with what the store holds before it.
    pub fn start(file: Spare, before: &Summary) -> io::Result<Journal> {
        let mut journal = Journal {
            blocks: Blocks::of(sector::mark(file.number)),
            file,
            position: 0,
            sequence: 0,
            draft: Draft::default(),
        };
        let head = [&before.bytes()[..], &journal.file.length.to_be_bytes()].concat();
        journal.draft.put(before.key(), &head);
        journal.write(|_| {})?;
        Ok(journal)
    }

    /// Writes one frame; returns when it is on disk.
    pub fn write(&mut self, fill: impl FnOnce(&mut Draft)) -> io::Result<()> {
        let Journal { file, position, sequence, draft, blocks } = self;
        fill(draft);
        draft.end(*sequence, |frame| {
            blocks.add(*position, frame, |blocks, at| file.file.write_all_at(blocks, at))?;
            #[cfg(not(target_os = "linux"))]
            file.file.sync_data()?;
            *position += frame.len() as u64;
            *sequence += 1;
            Ok(())
        })
    }

    pub fn number(&self) -> u64 {
        self.file.number
    }

    /// Whether the next file will be needed soon.
    pub fn is_half_full(&self) -> bool {
        self.position > self.room() / 2
    }

    /// Whether the next file should be started if it is there.
    pub fn is_nearly_full(&self) -> bool {
        self.position > self.room() / 4 * 3
    }

    /// Whether the next file must be started: the next write may not fit.
    pub fn is_full(&self) -> bool {
        self.position + self.room() / 8 > self.room()
    }

    /// How much fits into the file.
    fn room(&self) -> u64 {
        self.file.length / SECTOR as u64 * ROOM as u64
    }

    /// The file, which is not written any more.
    pub fn end(self) -> Spare {
        self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tail::Written;

    /// What is written in the file with this number.
    fn written(directory: &Path, number: u64) -> Written {
        Written::read(&directory.join(format!("{number}.jnl")), number).unwrap().unwrap()
    }

    #[test]
    fn a_file_is_used_again_without_what_it_held() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::start(Spare::make(directory.path(), 1, LONG).unwrap(), &Summary::default()).unwrap();
        journal.write(|draft| draft.put([7; 12], &vec![1; 100_000])).unwrap();
        assert!(written(directory.path(), 1).bytes.len() > 100_000);
        let again = journal.end().again(2).unwrap();
        let found = written(directory.path(), 2);
        assert!(found.bytes.is_empty() && found.length == LONG && found.is_end(0));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let mut journal = Journal::start(again, &Summary::default()).unwrap();
        journal.write(|draft| draft.put([8; 12], &[2; 10_000])).unwrap();
        let found = written(directory.path(), 2);
        assert!(found.bytes.len() < 11_000 && found.bytes.iter().filter(|byte| **byte == 2).count() >= 10_000);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_is_written_as_usual_where_the_disk_cannot_take_blocks_from_memory() {
        // What is no file on a disk cannot.
        open(Path::new("/dev/null")).unwrap().write_all_at(b"less than a block", 1).unwrap();
    }

    #[test]
    fn a_file_is_not_touched_under_its_old_number() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::start(Spare::make(directory.path(), 1, LONG).unwrap(), &Summary::default()).unwrap();
        let held = fs::read(directory.path().join("1.jnl")).unwrap();
        // Where it cannot have its new name, it is left as it is.
        fs::create_dir(directory.path().join("2.jnl")).unwrap();
        assert!(journal.end().again(2).is_err());
        assert!(fs::read(directory.path().join("1.jnl")).unwrap() == held);
    }
}
