//! Scans fjall's journals before fjall reads them. fjall drops everything from the first batch on that it cannot read, which
//! is right for a write that a crash cut short and wrong for a damaged file; and it refuses a journal whose last batch has
//! a hole, as a power loss leaves it. So this refuses the damaged ones, and truncates the torn ones.

use super::{
    checkpoint::Checkpoint,
    directory::Directory,
    frame::{Frame, FrameError, TRAILER},
};
use crate::{Error, Result};
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
    /// Where each batch begins.
    frames: Vec<(usize, Frame)>,
    /// Where the last batch ends.
    end: usize,
}

/// Checks every journal, and truncates the last one where a crash cut its last batch short; returns the last checkpoint
/// written.
pub(crate) fn recover(directory: &Directory) -> Result<Option<Checkpoint>> {
    let journals = scan(directory)?;
    let frames = || journals.iter().flat_map(|journal| &journal.frames);
    for pair in journals.windows(2) {
        if pair[0].number + 1 != pair[1].number {
            return Err(pair[1].damaged(directory, "does not follow the journal before it"));
        }
    }
    let is_ascending = frames().is_sorted_by(|(_, a), (_, b)| a.sequence < b.sequence);
    let Some(last) = journals.last().filter(|_| is_ascending) else {
        return Err(directory.damaged("the journal is missing, or its batches are out of order"));
    };
    // Journals without a batch may follow, if the writer failed before.
    let written = journals.iter().rfind(|journal| !journal.frames.is_empty()).unwrap_or(last);
    for journal in &journals {
        let is_torn = journal.number >= written.number && journal.is_torn();
        if is_torn {
            truncate(&journal.path, journal.end).map_err(|source| directory.failed(source))?;
        } else if journal.end < journal.bytes.len() {
            return Err(journal.damaged(directory, &format!("from byte {} on", journal.end)));
        }
    }
    Ok(frames().rev().find_map(|(_, frame)| frame.checkpoint))
}

/// Removes everything from the journals that was written after a checkpoint.
pub(crate) fn cut_after(directory: &Directory, checkpoint: &Checkpoint) -> Result<()> {
    let mut is_cut = false;
    for journal in scan(directory)? {
        let is_after = |frame: &Frame| frame.checkpoint.is_some_and(|it| it.is_after(checkpoint));
        let after = journal.frames.iter().find(|(_, frame)| is_after(frame));
        let end = after.map_or(journal.end, |(start, _)| *start);
        let cut = if is_cut {
            fs::remove_file(&journal.path)
        } else if end < journal.bytes.len() {
            is_cut = true;
            truncate(&journal.path, end)
        } else {
            Ok(())
        };
        cut.map_err(|source| directory.failed(source))?;
    }
    Ok(())
}

fn truncate(path: &Path, length: usize) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length as u64)?;
    file.sync_all()
}

/// Reads the journals in the order of their numbers.
fn scan(directory: &Directory) -> Result<Vec<Journal>> {
    let failed = |source| directory.failed(source);
    let mut journals = Vec::new();
    for file in fs::read_dir(directory.store()).map_err(failed)? {
        let path = file.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jnl")) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let number = number.ok_or_else(|| directory.damaged(format!("{} is no journal", path.display())))?;
            journals.push(Journal::read(number, path).map_err(failed)?);
        }
    }
    journals.sort_by_key(|journal| journal.number);
    Ok(journals)
}

impl Journal {
    fn read(number: u64, path: PathBuf) -> io::Result<Journal> {
        let bytes = contents(&path)?;
        let (mut frames, mut end) = (Vec::new(), 0);
        while let Ok(frame) = Frame::read(&bytes[end..]) {
            let length = frame.length;
            frames.push((end, frame));
            end += length;
        }
        Ok(Journal { number, path, bytes, frames, end })
    }

    fn damaged(&self, directory: &Directory, reason: &str) -> Error {
        directory.damaged(format!("store/{}.jnl {reason}", self.number))
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
