//! Checks the engine's journals before the engine reads them: the engine cuts a journal off at the first thing in it that
//! it does not understand, which is right for a write that a crash cut short, and wrong for a damaged file.

use super::{engine::Flaw, summary::Summary};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::xxh3_64;

/// Checks every journal; returns the last summary written.
pub(crate) fn verify(engine: &Path) -> Result<Option<Summary>, Flaw> {
    let journals = journals(engine)?;
    if journals.is_empty() {
        return Err(Flaw::Damaged("there is no journal".to_owned()));
    }
    let mut last = Last { sequence: None, summary: None };
    for (at, (number, path)) in journals.iter().enumerate() {
        let bytes = read(path).map_err(Flaw::Unread)?;
        let name = format!("store/{number}.jnl");
        let rest = last.read(&bytes).map_err(|reason| Flaw::Damaged(format!("{name}: {reason}")))?;
        let is_active = at + 1 == journals.len();
        let is_whole = is_end(&bytes, rest) || (is_active && is_torn(&bytes, rest));
        if !is_whole {
            return Err(Flaw::Damaged(format!("{name} from byte {rest} on")));
        }
    }
    Ok(last.summary)
}

fn journals(engine: &Path) -> Result<Vec<(u64, PathBuf)>, Flaw> {
    let mut journals = Vec::new();
    for file in fs::read_dir(engine).map_err(Flaw::Unread)? {
        let path = file.map_err(Flaw::Unread)?.path();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jnl")) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let number = number.ok_or_else(|| Flaw::Damaged(format!("{} is no journal", path.display())))?;
            journals.push((number, path));
        }
    }
    journals.sort();
    Ok(journals)
}

/// The number of the journal that is written.
pub(crate) fn last(engine: &Path) -> Result<u64, Flaw> {
    let journals = journals(engine)?;
    journals
        .last()
        .map(|(number, _)| *number)
        .ok_or_else(|| Flaw::Damaged("there is no journal".to_owned()))
}

/// Cuts the last batch of the last journal off somewhere; says whether there is one.
#[cfg(feature = "testing")]
pub(crate) fn tear(engine: &Path, choose: impl FnOnce(usize) -> usize) -> io::Result<bool> {
    let journals = journals(engine).map_err(|flaw| match flaw {
        Flaw::Unread(error) => error,
        Flaw::Damaged(reason) => io::Error::other(reason),
    })?;
    let Some((_, path)) = journals.last() else {
        return Ok(false);
    };
    let bytes = read(path)?;
    let (mut at, mut last) = (0, None);
    while let Ok(batch) = Batch::read(&bytes[at..]) {
        last = Some((at, batch.length));
        at += batch.length;
    }
    let Some((at, length)) = last else { return Ok(false) };
    File::options().write(true).open(path)?.set_len((at + choose(length)) as u64)?;
    Ok(true)
}

/// Reads a file without the zeros that the engine makes room with at its end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut length = 0;
    let mut chunk = [0; 64 << 10];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            return Ok(bytes);
        }
        if !chunk[..count].chunks(SECTOR).all(is_hole) {
            bytes.resize(length, 0);
            bytes.extend_from_slice(&chunk[..count]);
        }
        length += count;
    }
}

/// What the last batch said.
struct Last {
    sequence: Option<u64>,
    summary: Option<Summary>,
}

impl Last {
    /// Reads batches as long as they are whole; returns where they end.
    fn read(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut at = 0;
        while let Ok(batch) = Batch::read(&bytes[at..]) {
            if self.sequence.is_some_and(|sequence| sequence >= batch.sequence) {
                return Err(format!("the batch at byte {at} is out of order"));
            }
            self.sequence = Some(batch.sequence);
            self.summary = batch.summary.or(self.summary);
            at += batch.length;
        }
        Ok(at)
    }
}

/// Whether nothing was ever written from here on.
fn is_end(bytes: &[u8], rest: usize) -> bool {
    bytes[rest..].chunks(SECTOR).all(is_hole)
}

/// Whether what follows is one batch that a crash cut short. A process that dies leaves the beginning of it; a machine
/// that dies may leave sectors unwritten, which read as zeros. Nothing follows it in either case.
fn is_torn(bytes: &[u8], rest: usize) -> bool {
    let sectors = bytes.chunks(SECTOR).rposition(|sector| !is_hole(sector)).map_or(0, |last| last + 1);
    let written = &bytes[..bytes.len().min(sectors * SECTOR)];
    let written = &written[..written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
    let batch = &written[rest..];
    let ends = batch.windows(TRAILER.len()).enumerate().filter(|(_, window)| *window == TRAILER);
    let mut after_ends = ends.map(|(at, _)| &batch[at + TRAILER.len()..]);
    if after_ends.any(|next| Batch::read(next).is_ok()) {
        return false;
    }
    let is_beginning = matches!(Batch::read(batch), Err(Broken::Short)) && !batch.ends_with(TRAILER);
    is_beginning || written.chunks(SECTOR).skip(rest.div_ceil(SECTOR)).any(is_hole)
}

/// What a disk writes at once.
const SECTOR: usize = 512;

fn is_hole(sector: &[u8]) -> bool {
    sector == &[0; SECTOR][..sector.len()]
}

/// One atomic write: a start with the number of items, the items, an end with their hash.
struct Batch {
    sequence: u64,
    summary: Option<Summary>,
    length: usize,
}

enum Broken {
    /// It may go on where the bytes end.
    Short,
    /// It is no batch.
    Wrong,
}

const TRAILER: &[u8] = b"FJL\x03";

impl Batch {
    fn read(bytes: &[u8]) -> Result<Batch, Broken> {
        let mut reader = Reader { bytes, at: 0 };
        reader.expect(1)?;
        let items = u32::from_le_bytes(reader.array()?);
        let sequence = u64::from_le_bytes(reader.array()?);
        let from = reader.at;
        let mut summary = None;
        for _ in 0..items {
            let (key, value) = reader.item()?;
            summary = if Summary::is_at(key) {
                Summary::read(value)
            } else {
                summary
            };
        }
        let until = reader.at;
        reader.expect(3)?;
        let hash = u64::from_le_bytes(reader.array()?);
        let trailer = reader.take(TRAILER.len())?;
        if hash != xxh3_64(&bytes[from..until]) || trailer != TRAILER {
            return Err(Broken::Wrong);
        }
        Ok(Batch { sequence, summary, length: reader.at })
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads tag, kind, compression (none), keyspace, lengths of key, value and stored value; then key and value.
    fn item(&mut self) -> Result<(&'a [u8], &'a [u8]), Broken> {
        self.expect(2)?;
        let [_kind, compression] = self.array()?;
        let _keyspace: [u8; 8] = self.array()?;
        let key = u16::from_le_bytes(self.array()?);
        let value = u32::from_le_bytes(self.array()?);
        let stored = u32::from_le_bytes(self.array()?);
        if compression != 0 || value != stored {
            return Err(Broken::Wrong);
        }
        Ok((self.take(key.into())?, self.take(value as usize)?))
    }

    fn expect(&mut self, tag: u8) -> Result<(), Broken> {
        if self.array::<1>()? == [tag] {
            Ok(())
        } else {
            Err(Broken::Wrong)
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        Ok(self.take(N)?.try_into().expect("as long as asked for"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or(Broken::Short)?;
        self.at += length;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::damage;

    /// The journal of a store after some writes, where its last batch begins, and the revision before that one.
    fn journal() -> (Vec<u8>, usize, u64) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        for n in 0..5 {
            damage::put(&mut writer, "/a", &format!("{n}").repeat(500));
        }
        let path = directory.path().join("store/0.jnl");
        let before = read(&path).unwrap();
        damage::put(&mut writer, "/a", &"5".repeat(1_500));
        let length = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        (read(&path).unwrap(), length(&before), 5)
    }

    fn check(bytes: &[u8]) -> Option<u64> {
        let mut last = Last { sequence: None, summary: None };
        let rest = last.read(bytes).ok()?;
        (is_end(bytes, rest) || is_torn(bytes, rest)).then(|| last.summary.unwrap().revision)
    }

    #[test]
    fn a_batch_that_was_cut_short_is_left_out() {
        let (bytes, last, revision) = journal();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        assert_eq!(check(&bytes), Some(revision + 1));
        for at in last..end {
            assert_eq!(check(&bytes[..at]), Some(revision), "cut off at {at} of {last}..{end}");
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            assert_eq!(check(&zeroed), Some(revision), "zeros from {at} of {last}..{end}");
        }
    }

    #[test]
    fn a_batch_with_a_sector_that_never_reached_the_disk_is_left_out() {
        let (mut bytes, last, revision) = journal();
        let sector = last.div_ceil(SECTOR) * SECTOR;
        bytes[sector..sector + SECTOR].fill(0);
        assert_eq!(check(&bytes), Some(revision));
    }

    #[test]
    fn a_batch_that_was_whole_once_is_not_taken_for_one_cut_short() {
        let (bytes, last, revision) = journal();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for at in 0..end {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x04;
            // A sequence number that still is above the one before does no harm: nothing is left out.
            let found = check(&damaged);
            assert!(
                found.is_none() || found == Some(revision + 1),
                "byte {at} of {end}, the last batch from {last} on"
            );
        }
    }
}
