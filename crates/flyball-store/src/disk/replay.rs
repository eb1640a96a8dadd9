//! Reads and checks the journal of a store that is opened.

use super::{
    engine::Flaw,
    frame::{Frame, Item},
    summary::Summary,
    tail::Written,
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
    let mut unused = Vec::new();
    for (number, path) in files {
        let name = format!("store/journal/{number}.jnl");
        let flaw = |reason: &str| Flaw::Damaged(format!("{name} {reason}"));
        let written = Written::read(&path, number).map_err(Flaw::Unread)?;
        let written = written.map_err(|at| flaw(&format!("has a damaged sector at byte {at}")))?;
        let (frames, rest, last) = frames(&written.bytes).map_err(|reason| flaw(&reason))?;
        if !written.is_end(rest) && !written.is_torn(rest) {
            return Err(flaw(&format!("from byte {rest} on")));
        }
        let Some((before, after)) = last else {
            // Whatever is beyond the first frame was written when that one was whole.
            if !written.is_within_a_sector() {
                return Err(flaw("has lost its first frame"));
            }
            unused.push(path);
            continue;
        };
        let is_next = found.last().is_none_or(|last| last.number + 1 == number && last.after == before.0);
        if !is_next || !unused.is_empty() {
            return Err(flaw("does not follow what is before it"));
        }
        if written.length < before.1 {
            return Err(flaw("is cut off"));
        }
        let bytes = written.bytes;
        found.push(Found { number, path, bytes, frames, before: before.0, after });
    }
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
    use super::sector::{Mark, ROOM, place};
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
    // A sector in which the frame before ends keeps its mark.
    let is_shared = from / ROOM == (start - 1) / ROOM;
    let mark = place(from / ROOM * ROOM + ROOM - 1) + 1;
    bytes[place(from)..mark].fill(0);
    bytes[if is_shared { mark + size_of::<Mark>() } else { mark }..].fill(0);
    fs::write(&last.path, bytes)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{
        damage,
        journal::{Journal, LONG, SHORT, Spare},
        sector::{ROOM, SECTOR, place},
    };

    /// A journal before and after its last write, where in the file that begins and ends, and the revision before it.
    struct Last {
        before: Vec<u8>,
        after: Vec<u8>,
        start: usize,
        end: usize,
        revision: u64,
    }

    fn journal() -> Last {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store/journal/0.jnl");
        let mut writer = damage::open(directory.path());
        for n in 0..5 {
            damage::put(&mut writer, "/a", &format!("{n}").repeat(500));
        }
        let before = fs::read(&path).unwrap();
        damage::put(&mut writer, "/a", &"5".repeat(1_500));
        let (starts, end, _) = frames(&Written::read(&path, 0).unwrap().unwrap().bytes).unwrap();
        Last {
            before,
            after: fs::read(&path).unwrap(),
            start: place(*starts.last().unwrap()),
            end: place(end),
            revision: 5,
        }
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
        let Last { before, after, start, end, revision } = journal();
        assert_eq!((check(&after), after.len() as u64), (Some(revision + 1), SHORT));
        for at in (start..end).filter(|at| at % SECTOR <= ROOM) {
            let cut = [&after[..at], &before[at..]].concat();
            assert_eq!(check(&cut), Some(revision), "as before from {at} of {start}..{end}");
        }
    }

    #[test]
    fn a_write_with_a_sector_that_never_reached_the_disk_is_left_out() {
        let Last { before, mut after, start, revision, .. } = journal();
        let sector = start.next_multiple_of(SECTOR)..start.next_multiple_of(SECTOR) + SECTOR;
        after[sector.clone()].copy_from_slice(&before[sector]);
        assert_eq!(check(&after), Some(revision));
    }

    #[test]
    fn a_write_that_was_whole_once_is_not_taken_for_one_cut_short() {
        let Last { after, start, end, .. } = journal();
        for at in 0..end.next_multiple_of(SECTOR) {
            let mut damaged = after.clone();
            damaged[at] ^= 0x04;
            assert_eq!(check(&damaged), None, "byte {at} of {end}, the last frame from {start} on");
        }
    }

    #[test]
    fn a_write_of_which_only_the_marks_are_left_is_not_taken_for_none() {
        let Last { mut after, start, end, .. } = journal();
        (start..end).filter(|at| at % SECTOR < ROOM).for_each(|at| after[at] = 0);
        assert_eq!(check(&after), None);
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused_also_between_two_writes() {
        let Last { after, start, end, .. } = journal();
        for at in [
            start,
            end,
            end + 1,
            end.next_multiple_of(SECTOR),
            after.len() - SECTOR,
            after.len() - 1,
        ] {
            assert_eq!(check(&after[..at]), None, "cut off at {at} of {start}..{end}");
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
        let used = Journal::start(Spare::make(directory.path(), 0, LONG).unwrap(), &Summary::default()).unwrap();
        used.end().again(2).unwrap();
        Spare::make(directory.path(), 3, LONG).unwrap();
        assert_eq!(read(directory.path()).ok().unwrap().len(), 1);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
