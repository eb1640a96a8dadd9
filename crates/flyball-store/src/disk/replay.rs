//! Reads and checks the journal of a store that is opened.

use super::{
    engine::Flaw,
    frame::{Frame, Item},
    journal::CLEARED,
    summary::Summary,
    tail,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A file as it is found when a store is opened.
pub(crate) struct Found {
    pub number: u64,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where each frame begins.
    frames: Vec<usize>,
    pub before: Summary,
    pub after: Summary,
}

impl Found {
    /// Everything that is put and removed, in order.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        let frames = self.frames.iter().filter_map(|at| Frame::read(&self.bytes[*at..]).ok());
        frames.flat_map(|frame| frame.items).filter(|item| !Summary::is_at(item.key))
    }

    pub fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Reads and checks all files; those that nothing was ever written to are removed.
pub(crate) fn read(directory: &Path) -> Result<Vec<Found>, Flaw> {
    let mut found: Vec<Found> = Vec::new();
    let files = files(directory)?;
    let cleared = directory.join(CLEARED);
    let mut unused = Vec::new();
    for (number, path) in files {
        let name = format!("store/journal/{number}.jnl");
        let (bytes, length) = tail::read(&path).map_err(Flaw::Unread)?;
        let flaw = |reason: &str| Flaw::Damaged(format!("{name} {reason}"));
        let (frames, rest, last) = frames(&bytes).map_err(|reason| flaw(&reason))?;
        let is_torn = !tail::is_end(&bytes, rest);
        if is_torn && !tail::is_torn(&bytes, rest) {
            return Err(flaw(&format!("from byte {rest} on")));
        }
        let Some((before, after)) = last else {
            // Whatever is beyond the first frame was written when that one was whole.
            if !tail::is_end(&bytes, bytes.len().min(tail::SECTOR)) {
                return Err(flaw("has lost its first frame"));
            }
            unused.push(path);
            continue;
        };
        let is_next = found.last().is_none_or(|last| last.number + 1 == number && last.after == before.0);
        if !is_next || !unused.is_empty() {
            return Err(flaw("does not follow what is before it"));
        }
        if length < before.1 {
            return Err(flaw("is cut off"));
        }
        found.push(Found { number, path, bytes, frames, before: before.0, after });
    }
    unused.extend(Some(cleared).filter(|path| path.exists()));
    unused.into_iter().try_for_each(fs::remove_file).map_err(Flaw::Unread)?;
    Ok(found)
}

/// The summary before a file and how long it is, and the summary after its last frame.
type Ends = ((Summary, u64), Summary);

/// Reads frames as long as they are whole: where each begins, where they end, and what they say.
fn frames(bytes: &[u8]) -> Result<(Vec<usize>, usize, Option<Ends>), String> {
    let (mut at, mut starts, mut ends) = (0, Vec::new(), None);
    while let Ok(frame) = Frame::read(&bytes[at..]) {
        let wrong = || format!("has a frame at byte {at} that does not belong there");
        let last = frame.items.last().filter(|item| Summary::is_at(item.key)).ok_or_else(wrong)?;
        if frame.sequence != starts.len() as u64 {
            return Err(wrong());
        }
        ends = match ends {
            None => {
                let (summary, length) = last.value.split_last_chunk().ok_or_else(wrong)?;
                let summary = Summary::read(summary).ok_or_else(wrong)?;
                Some(((summary, u64::from_be_bytes(*length)), summary))
            }
            Some((before, _)) => Some((before, Summary::read(last.value).ok_or_else(wrong)?)),
        };
        starts.push(at);
        at += frame.length;
    }
    Ok((starts, at, ends))
}

/// The files by number.
pub(crate) fn files(directory: &Path) -> Result<Vec<(u64, PathBuf)>, Flaw> {
    let mut files = Vec::new();
    for file in fs::read_dir(directory).map_err(Flaw::Unread)? {
        let path = file.map_err(Flaw::Unread)?.path();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jnl")) {
            let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let number = number.ok_or_else(|| Flaw::Damaged(format!("{} is no journal", path.display())))?;
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

/// Leaves of the last write only a part, as a crash may; says whether there was one.
#[cfg(feature = "testing")]
pub(crate) fn tear(directory: &Path, choose: impl FnOnce(usize) -> usize) -> io::Result<bool> {
    let said = |flaw| match flaw {
        Flaw::Unread(error) => error,
        Flaw::Damaged(reason) => io::Error::other(reason),
    };
    let Some(last) = read(directory).map_err(said)?.pop() else {
        return Ok(false);
    };
    let (starts, end, _) = frames(&last.bytes).map_err(io::Error::other)?;
    let Some(start) = starts.last().filter(|_| starts.len() > 1) else {
        return Ok(false);
    };
    let from = start + choose(end - start);
    let mut bytes = fs::read(&last.path)?;
    bytes[from..].fill(0);
    fs::write(&last.path, bytes)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{
        damage,
        journal::{Journal, LONG, SHORT, Spare},
    };

    const SECTOR: usize = 512;

    /// A journal after some writes, where its last frame begins and ends, and the revision before that one.
    fn journal() -> (Vec<u8>, usize, usize, u64) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = damage::open(directory.path());
        for n in 0..5 {
            damage::put(&mut writer, "/a", &format!("{n}").repeat(500));
        }
        damage::put(&mut writer, "/a", &"5".repeat(1_500));
        let bytes = fs::read(directory.path().join("store/journal/0.jnl")).unwrap();
        let (starts, end, _) = frames(&bytes).unwrap();
        (bytes, *starts.last().unwrap(), end, 5)
    }

    /// Opens a journal of these bytes: says to which revision it leads.
    fn check(bytes: &[u8]) -> Option<u64> {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("0.jnl"), bytes).unwrap();
        let found = read(directory.path()).ok()?;
        found.last().map(|last| last.after.revision)
    }

    #[test]
    fn a_write_that_was_cut_short_is_left_out() {
        let (bytes, last, end, revision) = journal();
        assert_eq!((check(&bytes), bytes.len() as u64), (Some(revision + 1), SHORT));
        for at in last..end {
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            assert_eq!(check(&zeroed), Some(revision), "zeros from {at} of {last}..{end}");
        }
    }

    #[test]
    fn a_write_with_a_sector_that_never_reached_the_disk_is_left_out() {
        let (mut bytes, last, _, revision) = journal();
        let sector = last.div_ceil(SECTOR) * SECTOR;
        bytes[sector..sector + SECTOR].fill(0);
        assert_eq!(check(&bytes), Some(revision));
    }

    #[test]
    fn a_write_that_was_whole_once_is_not_taken_for_one_cut_short() {
        let (bytes, last, end, revision) = journal();
        for at in 0..end {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x04;
            let found = check(&damaged);
            assert_eq!(found, None, "byte {at} of {end}, the last frame from {last} on, {revision} before it");
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused_also_between_two_writes() {
        let (bytes, last, end, _) = journal();
        for at in [last, end, end + 1, bytes.len() - 1] {
            assert_eq!(check(&bytes[..at]), None, "cut off at {at} of {last}..{end}");
        }
    }

    #[test]
    fn files_that_do_not_follow_each_other_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let summary = |revision| Summary { revision, ..Summary::default() };
        for (number, revision) in [(3, 10), (4, 10), (6, 10)] {
            Journal::start(Spare::make(path, number, SHORT).unwrap(), &summary(revision)).unwrap();
        }
        let reason = |found: Result<Vec<Found>, Flaw>| match found {
            Err(Flaw::Damaged(reason)) => reason,
            _ => panic!("it is not refused"),
        };
        assert_eq!(reason(read(path)), "store/journal/6.jnl does not follow what is before it");
        fs::remove_file(path.join("6.jnl")).unwrap();
        assert_eq!(read(path).ok().unwrap().len(), 2);
        Journal::start(Spare::make(path, 5, SHORT).unwrap(), &summary(9)).unwrap();
        assert_eq!(reason(read(path)), "store/journal/5.jnl does not follow what is before it");
    }

    #[test]
    fn what_a_crash_left_of_files_that_were_not_written_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        Journal::start(Spare::make(directory.path(), 1, SHORT).unwrap(), &Summary::default()).unwrap();
        Spare::make(directory.path(), 2, LONG).unwrap();
        fs::write(directory.path().join(CLEARED), "half of it").unwrap();
        assert_eq!(read(directory.path()).ok().unwrap().len(), 1);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
