//! A backup: one file with every record of one revision, and at its end their number and a hash of all bytes before it.

use crate::{Error, Result, Snapshot, disk::private_file, record::Record};
use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::Xxh3;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The revision at which everything was read.
    pub revision: u64,
    /// How many keys there are.
    pub entries: u64,
}

const FORMAT: &[u8; 17] = b"flyball-backup 1\n";

/// Follows the last record, in the place of a length.
const END: u32 = u32::MAX;

/// Writes a snapshot into a file, and verifies that it is there.
pub(crate) async fn write(mut snapshot: Snapshot, path: PathBuf) -> Result<Backup> {
    let runtime = tokio::runtime::Handle::current();
    let write = move || {
        let mut writer = Writer::create(path, snapshot.revision())?;
        while let Some(entry) = runtime.block_on(snapshot.next()).transpose()? {
            writer.add(&Record::of(&entry, 0))?;
        }
        writer.finish()
    };
    blocking(write).await
}

/// Runs blocking I/O on tokio's blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Error::Closed))
}

/// A backup that is being written beside the place where it will be.
struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    /// The hash of everything written.
    hash: Box<Xxh3>,
    backup: Backup,
    draft: Draft,
}

/// A file that is removed unless it was renamed.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // It is not there where it was renamed.
        fs::remove_file(&self.0).ok();
    }
}

impl Writer {
    fn create(path: PathBuf, revision: u64) -> Result<Writer> {
        let draft = Draft(draft(&path));
        let file = private_file(&draft.0).map_err(|source| failed("write", &path, source))?;
        let mut writer = Writer {
            path,
            file: BufWriter::new(file),
            hash: Box::default(),
            backup: Backup { revision, entries: 0 },
            draft,
        };
        writer.put(&[FORMAT, &revision.to_be_bytes()])?;
        Ok(writer)
    }

    fn add(&mut self, record: &Record) -> Result<()> {
        self.backup.entries += 1;
        self.put(&[&(record.size() as u32).to_be_bytes(), record.bytes()])
    }

    fn finish(mut self) -> Result<Backup> {
        self.put(&[&END.to_be_bytes(), &self.backup.entries.to_be_bytes()])?;
        let hash = self.hash.digest128().to_be_bytes();
        self.put(&[&hash])?;
        let (draft, path) = (&self.draft.0, self.path);
        let failed = |source| failed("write", &path, source);
        let file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        let found = Reader::open(draft)?.verify()?;
        if found != self.backup {
            return Err(damaged(&path, "it does not hold what was written"));
        }
        fs::rename(draft, &path).map_err(failed)?;
        sync_parent(&path).map_err(failed)?;
        Ok(found)
    }

    fn put(&mut self, parts: &[&[u8]]) -> Result<()> {
        parts.iter().for_each(|part| self.hash.update(part));
        let written = parts.iter().try_for_each(|part| self.file.write_all(part));
        written.map_err(|source| failed("write", &self.path, source))
    }
}

/// A backup that is being read.
pub(crate) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// The hash of everything read.
    hash: Box<Xxh3>,
    length: u64,
    /// The part that was read so far.
    pub backup: Backup,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader> {
        let failed = |source| failed("read", path, source);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut reader = Reader {
            path: path.to_owned(),
            file: BufReader::new(file),
            hash: Box::default(),
            length,
            backup: Backup { revision: 0, entries: 0 },
        };
        if reader.array().ok().as_ref() != Some(FORMAT) {
            return Err(damaged(path, "it does not begin as a backup does"));
        }
        reader.backup.revision = u64::from_be_bytes(reader.array()?);
        Ok(reader)
    }

    /// Reads the next record; `None` after the last one, when the hash of all is as it should be.
    pub fn next(&mut self) -> Result<Option<Record>> {
        let length = u32::from_be_bytes(self.array()?);
        if length == END {
            return self.end().map(|()| None);
        }
        if u64::from(length) > self.length {
            return Err(damaged(&self.path, "a record is longer than the file"));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        let record = Record::read(&bytes).filter(|record| !record.is_removal());
        self.backup.entries += 1;
        record.map(Some).ok_or_else(|| damaged(&self.path, "a record cannot be read"))
    }

    /// Reads to the end; returns what the backup holds.
    pub fn verify(mut self) -> Result<Backup> {
        while self.next()?.is_some() {}
        Ok(self.backup)
    }

    fn end(&mut self) -> Result<()> {
        let entries = u64::from_be_bytes(self.array()?);
        let hash = self.hash.digest128().to_be_bytes();
        if hash != self.array()? {
            return Err(damaged(&self.path, "its checksum is wrong"));
        }
        if entries != self.backup.entries || self.file.read_exact(&mut [0]).is_ok() {
            return Err(damaged(&self.path, "it does not end where it should"));
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => damaged(&self.path, "it is cut off"),
            _ => failed("read", &self.path, source),
        })?;
        self.hash.update(bytes);
        Ok(())
    }
}

/// Makes a new name durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

fn draft(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

fn failed(attempt: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Backup { attempt, path: path.to_owned(), source: source.into() }
}

pub(crate) fn damaged(path: &Path, reason: &str) -> Error {
    Error::BackupDamaged { path: path.to_owned(), reason: reason.to_owned() }
}
