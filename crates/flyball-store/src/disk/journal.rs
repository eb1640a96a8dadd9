//! Scans fjall's journals before fjall reads them. fjall drops everything from the first batch on that it cannot read, which
//! is right for a write that a crash cut short and wrong for a damaged file; and it refuses a journal whose last batch has
//! a hole, as a power loss leaves it. So this refuses the damaged ones, and truncates the torn ones.

use super::{
    checkpoint::Checkpoint,
    frame::{Frame, FrameError, TRAILER},
    verify::VerifyError,
};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The unit in which a disk writes: a power loss leaves a sector as it was before or as it is after a write.
const SECTOR: usize = 512;

/// How many bytes of a journal are read at once.
const READ_BYTES: usize = 64 << 10;

/// A journal and its batches.
struct Journal {
    number: u64,
    path: PathBuf,
    /// The contents without the zeros at their end.
    bytes: Vec<u8>,
    /// Where each batch begins, and its checkpoint.
    frames: Vec<(usize, Option<Checkpoint>)>,
    /// Where the last batch ends.
    end: usize,
    first_sequence: Option<u64>,
    last_sequence: Option<u64>,
}

/// Checks every journal, and truncates the last one where a crash cut its last batch short; returns the last checkpoint
/// written.
pub(crate) fn recover(store: &Path) -> Result<Option<Checkpoint>, VerifyError> {
    let journals = scan(store)?;
    if journals.is_empty() {
        return Err(VerifyError::Damaged("the journal is missing".to_owned()));
    }
    for pair in journals.windows(2) {
        let (sequence, next) = (pair[0].last_sequence, pair[1].first_sequence);
        let is_ascending = sequence.is_none() || next.is_none() || sequence < next;
        if pair[0].number + 1 != pair[1].number || !is_ascending {
            return Err(pair[1].damaged("does not follow the journal before it"));
        }
    }
    let last = journals.iter().rposition(|journal| !journal.frames.is_empty()).unwrap_or(0);
    for (at, journal) in journals.iter().enumerate() {
        let is_torn = at >= last && journal.is_torn();
        if !journal.is_end() && !is_torn {
            return Err(journal.damaged(&format!("from byte {} on", journal.end)));
        }
        if is_torn {
            truncate(&journal.path, journal.end).map_err(VerifyError::Unread)?;
        }
    }
    Ok(checkpoints(&journals).last())
}

/// Removes everything from the journals that was written after a checkpoint.
pub(crate) fn cut_after(store: &Path, checkpoint: &Checkpoint) -> Result<(), VerifyError> {
    let mut is_cut = false;
    for journal in scan(store)? {
        let is_after = |frame: &&(usize, Option<Checkpoint>)| frame.1.is_some_and(|it| it.is_after(checkpoint));
        let end = journal.frames.iter().find(is_after).map_or(journal.end, |frame| frame.0);
        let cut = if is_cut {
            fs::remove_file(&journal.path)
        } else if end < journal.bytes.len() {
            is_cut = true;
            truncate(&journal.path, end)
        } else {
            Ok(())
        };
        cut.map_err(VerifyError::Unread)?;
    }
    Ok(())
}

fn truncate(path: &Path, length: usize) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length as u64)?;
    file.sync_all()
}

fn checkpoints(journals: &[Journal]) -> impl Iterator<Item = Checkpoint> {
    journals
        .iter()
        .flat_map(|journal| journal.frames.iter().filter_map(|(_, checkpoint)| *checkpoint))
}

fn scan(store: &Path) -> Result<Vec<Journal>, VerifyError> {
    let files = files(store)?;
    files.into_iter().map(|(number, path)| Journal::read(number, path)).collect()
}

/// The journals by number.
fn files(store: &Path) -> Result<Vec<(u64, PathBuf)>, VerifyError> {
    let mut files = Vec::new();
    for file in fs::read_dir(store).map_err(VerifyError::Unread)? {
        let path = file.map_err(VerifyError::Unread)?.path();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jnl")) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let number = number.ok_or_else(|| VerifyError::Damaged(format!("{} is no journal", path.display())))?;
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

impl Journal {
    fn read(number: u64, path: PathBuf) -> Result<Journal, VerifyError> {
        let bytes = contents(&path).map_err(VerifyError::Unread)?;
        let mut journal = Journal {
            number,
            path,
            bytes,
            frames: Vec::new(),
            end: 0,
            first_sequence: None,
            last_sequence: None,
        };
        while let Ok(frame) = Frame::read(&journal.bytes[journal.end..]) {
            if journal.last_sequence.is_some_and(|sequence| sequence >= frame.sequence) {
                return Err(journal.damaged(&format!("has a batch out of order at byte {}", journal.end)));
            }
            journal.first_sequence = journal.first_sequence.or(Some(frame.sequence));
            journal.last_sequence = Some(frame.sequence);
            journal.frames.push((journal.end, frame.checkpoint));
            journal.end += frame.length;
        }
        Ok(journal)
    }

    fn damaged(&self, reason: &str) -> VerifyError {
        VerifyError::Damaged(format!("store/{}.jnl {reason}", self.number))
    }

    /// Whether nothing follows the last batch.
    fn is_end(&self) -> bool {
        self.bytes.len() <= self.end
    }

    /// Whether one batch follows that a crash cut short. A process that dies leaves the beginning of it; a machine that
    /// dies may leave any of its sectors unwritten: those read as zeros, and the one that it shares with the batch
    /// before has zeros from the end of that one on. No whole batch follows it in either case.
    fn is_torn(&self) -> bool {
        let rest = &self.bytes[self.end.min(self.bytes.len())..];
        if rest.is_empty() {
            return false;
        }
        let trailers = rest.windows(TRAILER.len()).enumerate().filter(|(_, window)| *window == TRAILER);
        let mut after_trailers = trailers.map(|(at, _)| &rest[at + TRAILER.len()..]);
        if after_trailers.any(|next| Frame::read(next).is_ok()) {
            return false;
        }
        let is_beginning = matches!(Frame::read(rest), Err(FrameError::Short)) && !rest.ends_with(TRAILER);
        let shared = &rest[..rest.len().min(self.end.next_multiple_of(SECTOR) - self.end)];
        let has_hole = self.bytes.chunks(SECTOR).skip(self.end.div_ceil(SECTOR)).any(is_zero);
        is_beginning || (!shared.is_empty() && is_zero(shared)) || has_hole
    }
}

/// Reads a file without the zeros at its end, with which fjall preallocates it.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut length, mut chunk) = (Vec::new(), 0, vec![0; READ_BYTES]);
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        if !is_zero(&chunk[..count]) {
            bytes.resize(length, 0);
            bytes.extend_from_slice(&chunk[..count]);
        }
        length += count;
    }
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    Ok(bytes)
}

fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; SECTOR] = [0; SECTOR];
    bytes.chunks(SECTOR).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// Truncates the last journal somewhere within its last batch; returns whether there is one.
#[cfg(feature = "testing")]
pub(crate) fn tear(store: &Path, choose: impl FnOnce(usize) -> usize) -> io::Result<bool> {
    let journals = scan(store).map_err(|error| match error {
        VerifyError::Unread(error) => error,
        VerifyError::Damaged(reason) => io::Error::other(reason),
    })?;
    let Some((journal, (start, _))) = journals.last().and_then(|last| Some((last, last.frames.last()?))) else {
        return Ok(false);
    };
    truncate(&journal.path, start + choose(journal.end - start))?;
    Ok(true)
}
