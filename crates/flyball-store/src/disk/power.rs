//! Loses the power in the middle of the last write, in every way in which a disk may: what is found then is all that was
//! acknowledged, and of the last write everything or nothing.

use super::{
    damage, frame,
    journal::{Journal, Spare},
    patience::Patience,
    replay,
    sector::{self, ROOM, SECTOR},
    summary::Summary,
    tail::Written,
    writer::Writer,
};
use crate::{Expect, Op, Range, testing::Chance};
use std::{fs, os::unix::fs::FileExt, path::Path, time::Instant};

/// How long the journals are that nothing but this test writes to.
const LENGTH: u64 = 64 << 10;

/// A file before and after its last write.
struct Last {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Last {
    /// The sectors that the write changes.
    fn sectors(&self) -> Vec<usize> {
        let pairs = self.before.chunks(SECTOR).zip(self.after.chunks(SECTOR));
        pairs
            .enumerate()
            .filter(|(_, (before, after))| before != after)
            .map(|(at, _)| at)
            .collect()
    }

    /// What is on disk where only the first `until` bytes were handed to it, and of those only some of the sectors that
    /// change have reached it: those whose bit is set.
    fn torn(&self, until: usize, reached: usize) -> Vec<u8> {
        let mut bytes = self.before.clone();
        for (bit, sector) in self.sectors().into_iter().enumerate() {
            let (from, to) = (sector * SECTOR, ((sector + 1) * SECTOR).min(until));
            if reached >> bit & 1 == 1 && from < to {
                bytes[from..to].copy_from_slice(&self.after[from..to]);
            }
        }
        bytes
    }

    /// Where the write begins and ends.
    fn range(&self) -> (usize, usize) {
        let differs = |at: &usize| self.before[*at] != self.after[*at];
        let start = (0..self.after.len()).find(differs).unwrap();
        let end = (0..self.after.len()).rev().find(differs).unwrap();
        (start, end + 1)
    }
}

fn summary(revision: u64) -> Summary {
    Summary { revision, ..Summary::default() }
}

/// Whether a file was used before it got its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    Unused,
    Used,
}

const PASTS: [Past; 2] = [Past::Unused, Past::Used];

/// The number of the files that are written here.
const NUMBER: u64 = 4;

/// A file that is about to be written; one that was used before is full of frames of that time.
fn spare(directory: &Path, past: Past) -> Spare {
    let spare = Spare::make(directory, NUMBER, LENGTH).unwrap();
    if past == Past::Used {
        let (mut frames, mut draft) = (Vec::new(), frame::Draft::default());
        for n in 0..LENGTH / 300 {
            draft.put([7; 12], &vec![b'o'; 300 + n as usize]);
            draft.put(summary(n).key(), &summary(n).bytes());
            draft.end(n, |frame| frames.extend_from_slice(frame));
        }
        let mut sectors = vec![0; LENGTH as usize];
        sector::write(&mut sectors, sector::mark(NUMBER - 1), 0, &frames);
        let file = fs::File::options().write(true).open(directory.join(format!("{NUMBER}.jnl"))).unwrap();
        file.write_all_at(&sectors, 0).unwrap();
    }
    spare
}

/// Writes frames whose values are so long into a file, and returns the file before, after its head, and after each.
fn journal(past: Past, lengths: &[usize]) -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let read = || fs::read(directory.path().join(format!("{NUMBER}.jnl"))).unwrap();
    let spare = spare(directory.path(), past);
    let mut files = vec![read()];
    let mut journal = Journal::start(spare, &summary(0)).unwrap();
    files.push(read());
    for (length, revision) in lengths.iter().zip(1..) {
        let write = journal.write(|draft| {
            draft.put([7; 12], &vec![b'v'; *length]);
            draft.put(summary(revision).key(), &summary(revision).bytes());
        });
        write.unwrap();
        files.push(read());
    }
    files
}

/// How much is in a file.
fn end(file: &[u8]) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, file).unwrap();
    let written = Written::read(&path, NUMBER).unwrap().unwrap().bytes;
    written.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// A write that begins so many bytes into a sector, of a value that is so long.
fn last(past: Past, offset: usize, length: usize) -> Last {
    let filler = (offset + 2 * ROOM - end(&journal(past, &[0])[2]) % ROOM) % ROOM;
    let [.., before, after] = &mut journal(past, &[filler, length])[..] else {
        panic!("there are four")
    };
    assert_eq!(end(before) % ROOM, offset);
    Last { before: before.clone(), after: after.clone() }
}

/// The revision to which a journal of these bytes leads; `None` where it is refused.
fn revision(directory: &Path, bytes: &[u8]) -> Option<u64> {
    fs::write(directory.join(format!("{NUMBER}.jnl")), bytes).unwrap();
    replay::read(directory).ok()?.last().map(|last| last.after.revision)
}

#[test]
fn whatever_sectors_of_the_last_write_are_lost_those_before_it_are_there() {
    let directory = tempfile::tempdir().unwrap();
    for (past, offset) in PASTS
        .into_iter()
        .flat_map(|past| [0, 1, 13, 255, 400, 502, 503].map(|offset| (past, offset)))
    {
        for length in [0, 300, 512, 900, 1_700] {
            let last = last(past, offset, length);
            let all = (1 << last.sectors().len()) - 1;
            for reached in 0..=all {
                let expected = if reached == all { 2 } else { 1 };
                let found = revision(directory.path(), &last.torn(usize::MAX, reached));
                let what = || format!("{past:?}, {length} bytes from {offset} on, of {all:b} reached {reached:b}");
                assert_eq!(found, Some(expected), "{}", what());
            }
        }
    }
}

#[test]
fn whatever_was_handed_to_the_disk_and_whatever_of_it_is_lost_those_before_it_are_there() {
    let mut chance = Chance::from_environment();
    println!("FLYBALL_SEED={}", chance.seed);
    let directory = tempfile::tempdir().unwrap();
    for past in [PASTS; 15].into_iter().flatten() {
        let last = last(past, chance.below(ROOM), chance.below(2_000));
        let ((start, end), all) = (last.range(), 1 << last.sectors().len());
        for _ in 0..60 {
            let (until, reached) = (start + chance.below(end - start), chance.below(all));
            // No system stops in the middle of a mark.
            let until = until.min(until / SECTOR * SECTOR + ROOM);
            let found = revision(directory.path(), &last.torn(until, reached));
            assert_eq!(found, Some(1), "{past:?}, {start}..{until}..{end}, of {:b} reached {reached:b}", all - 1);
        }
    }
}

#[test]
fn a_first_write_that_is_lost_in_part_is_as_if_the_file_had_not_been_begun() {
    let directory = tempfile::tempdir().unwrap();
    for past in PASTS {
        let [before, head] = &journal(past, &[])[..] else {
            panic!("there are two")
        };
        let last = Last { before: before.clone(), after: head.clone() };
        for until in 0..=ROOM {
            assert!(replay::read(directory.path()).is_ok_and(|found| found.is_empty()));
            assert_eq!(revision(directory.path(), &last.torn(until, 1)), None, "{past:?}, {until}");
            assert!(!directory.path().join(format!("{NUMBER}.jnl")).exists());
        }
        assert_eq!(revision(directory.path(), head), Some(0));
        fs::remove_file(directory.path().join(format!("{NUMBER}.jnl"))).unwrap();
    }
}

#[test]
fn a_first_write_that_was_whole_once_is_not_taken_for_one_that_was_lost() {
    for past in PASTS {
        let directory = tempfile::tempdir().unwrap();
        Journal::start(Spare::make(directory.path(), NUMBER - 1, LENGTH).unwrap(), &summary(0)).unwrap();
        let files = journal(past, &[900]);
        let (before, mut lost) = (&files[0], files[2].clone());
        let path = directory.path().join(format!("{NUMBER}.jnl"));
        fs::write(&path, &lost).unwrap();
        assert_eq!(replay::read(directory.path()).ok().map(|found| found.len()), Some(2));
        lost[..SECTOR].copy_from_slice(&before[..SECTOR]);
        fs::write(&path, &lost).unwrap();
        assert!(replay::read(directory.path()).is_err() && path.exists());
    }
}

/// What was written is refused if it is damaged, and so is every mark; what was there before may be as it likes.
#[test]
fn damage_is_noticed_also_in_a_file_that_was_used_before() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = journal(Past::Used, &[300, 900]).pop().unwrap();
    let written = sector::place(end(&file)).next_multiple_of(SECTOR);
    for at in (0..written).chain((written..file.len()).step_by(7)) {
        file[at] ^= 0x04;
        let is_refused = at < written || at % SECTOR >= ROOM;
        let expected = if is_refused { None } else { Some(2) };
        assert_eq!(revision(directory.path(), &file), expected, "byte {at}, of which {written} are written");
        file[at] ^= 0x04;
    }
}

/// What is there: all keys, with their values and revisions.
fn contents(writer: &Writer) -> (u64, String) {
    let core = &writer.desk.core;
    let page = core.find(Range::default()).and_then(|found| core.read(&found)).unwrap();
    (core.revision(), format!("{:?}", page.entries))
}

/// Two commits in one write, the second of which replaces, removes and adds.
fn last_batch(writer: &mut Writer) {
    let big = "last".repeat(150);
    let first = vec![
        Op::put("/a", big.clone(), Expect::Anything),
        Op::put("/c", "last", Expect::Absent),
    ];
    let second = vec![Op::delete("/b", Expect::Anything), Op::put("/c", big, Expect::Anything)];
    let commits = [first, second].map(|ops| writer.desk.commit(ops).unwrap());
    let batch = writer.desk.take(&mut Patience::new(Instant::now())).unwrap();
    writer.persist(batch).unwrap().finish(&writer.desk);
    drop(commits);
}

/// Opens stores after every loss of sectors of a write that is the second or a later one of its file, which takes some seconds.
#[test]
fn a_store_that_lost_its_power_opens_with_what_was_acknowledged_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (original, copy) = (directory.path().join("original"), directory.path().join("copy"));
    let mut writer = damage::open(&original);
    ["/a", "/b", "/d"].iter().for_each(|key| damage::put(&mut writer, key, "one"));
    writer.log.flush().unwrap();
    damage::put(&mut writer, "/a", &"two".repeat(100));
    let file = format!("store/journal/{}.jnl", writer.log.number());
    let before = (fs::read(original.join(&file)).unwrap(), contents(&writer));
    last_batch(&mut writer);
    let after = (fs::read(original.join(&file)).unwrap(), contents(&writer));
    drop(writer);
    let last = Last { before: before.0, after: after.0 };
    let all = (1 << last.sectors().len()) - 1;
    assert!(all >= 7, "{all:b}");
    for reached in 0..=all {
        damage::copy_all(&original, &copy);
        fs::write(copy.join(&file), last.torn(usize::MAX, reached)).unwrap();
        let expected = if reached == all { &after.1 } else { &before.1 };
        let mut writer = damage::open(&copy);
        assert_eq!(&contents(&writer), expected, "of {all:b} reached {reached:b}");
        damage::put(&mut writer, "/e", "goes on");
        drop(writer);
        assert_eq!(damage::open(&copy).desk.core.revision(), expected.0 + 1);
        fs::remove_dir_all(&copy).unwrap();
    }
}
