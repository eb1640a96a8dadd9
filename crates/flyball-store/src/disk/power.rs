//! Loses the power in the middle of the last group commit, in every way in which a disk may: everything acknowledged is
//! there afterwards, and of the last batch everything or nothing.

use super::{commit_queue::Job, damage, journal::SECTOR, writer::Writer};
use crate::{Expect, Op, Options, testing::Chance, txn::Txn};
use std::{fs, path::Path};
use tokio::sync::oneshot;

/// A journal before and after its last batch.
struct LastWrite {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl LastWrite {
    /// The sectors that the batch changes.
    fn sectors(&self) -> Vec<usize> {
        let sectors = 0..self.after.len().div_ceil(SECTOR);
        let sector = |bytes: &[u8], at: usize| -> Vec<u8> {
            let end = bytes.len().min((at + 1) * SECTOR);
            bytes[(at * SECTOR).min(end)..end].to_vec()
        };
        sectors.filter(|at| sector(&self.before, *at) != sector(&self.after, *at)).collect()
    }

    /// The file where it has grown to `length`, and of its changed sectors only those have reached the disk whose bit is
    /// set; the others are as before, or zeros.
    fn torn(&self, length: usize, reached: u64) -> Vec<u8> {
        let mut bytes = self.before.clone();
        bytes.resize(length.max(self.before.len()), 0);
        for (bit, sector) in self.sectors().into_iter().enumerate() {
            let (from, to) = (sector * SECTOR, ((sector + 1) * SECTOR).min(self.after.len()).min(bytes.len()));
            if reached >> bit & 1 == 1 && from < to {
                bytes[from..to].copy_from_slice(&self.after[from..to]);
            }
        }
        bytes
    }
}

/// Commits some values of a length with one fsync, each with its own revision.
fn commit_together(writer: &mut Writer, keys: &[&str], value: &str) {
    let commits = keys.iter().map(|key| {
        let (reply, answer) = oneshot::channel();
        let ops = vec![Op::put((*key).to_owned(), value.to_owned(), Expect::Anything)];
        (Job::Commit { txn: Txn::new(ops).unwrap(), reply }, answer)
    });
    let (jobs, answers): (Vec<_>, Vec<_>) = commits.unzip();
    writer.serve(jobs);
    for mut answer in answers {
        answer.try_recv().unwrap().unwrap().answer().unwrap();
    }
}

/// Makes a store whose journal is preallocated (never reopened) or appended to, and a last batch in it; returns that.
fn last_write(path: &Path, is_appended: bool, length: usize) -> LastWrite {
    let mut writer = damage::open(path);
    if is_appended {
        drop(writer);
        writer = damage::open(path);
    }
    commit_together(&mut writer, &["/a", "/b"], "acknowledged");
    let journal = path.join("store/0.jnl");
    let before = fs::read(&journal).unwrap();
    commit_together(&mut writer, &["/a", "/b"], &"v".repeat(length));
    let after = fs::read(&journal).unwrap();
    LastWrite { before, after }
}

/// Opens a copy of a store with another journal: says whether the last batch is there, as a whole.
fn has_last(original: &Path, copy: &Path, journal: &[u8], length: usize) -> bool {
    damage::copy_all(original, copy);
    fs::write(copy.join("store/0.jnl"), journal).unwrap();
    let mut writer = damage::open_with(copy, Options { memory_bytes: 0, ..Options::default() });
    let revision = writer.state.revision();
    let values = ["/a", "/b"].map(|key| damage::get(&writer, key).unwrap().unwrap());
    let is_there = revision == 4;
    let expected = if is_there {
        "v".repeat(length)
    } else {
        "acknowledged".to_owned()
    };
    assert!(revision == 2 || revision == 4, "{revision}: half of a batch");
    assert_eq!(values, [expected.clone(), expected]);
    damage::put(&mut writer, "/after", "goes on");
    drop(writer);
    let writer = damage::open(copy);
    assert_eq!(writer.state.revision(), revision + 1);
    drop(writer);
    fs::remove_dir_all(copy).unwrap();
    is_there
}

#[test]
fn whichever_sectors_of_the_last_batch_are_lost_those_before_it_are_there() {
    let mut chance = Chance::from_environment();
    println!("FLYBALL_SEED={}", chance.seed);
    let directory = tempfile::tempdir().unwrap();
    for (is_appended, length) in [(false, 100), (true, 10), (true, 100), (true, 700), (true, 2_000)] {
        let name = format!("{is_appended}-{length}");
        let (original, copy) = (directory.path().join(&name), directory.path().join(format!("{name}-copy")));
        let last = last_write(&original, is_appended, length);
        let all = (1_u64 << last.sectors().len()) - 1;
        // Every subset where there are few, and some of them where there are many; one at a time is always among them.
        let mut subsets: Vec<u64> = (0..=all.min(15)).collect();
        subsets.extend((0..last.sectors().len()).map(|bit| all & !(1 << bit)));
        subsets.extend((0..20).map(|_| chance.below(all as usize + 1) as u64));
        subsets.extend([0, all]);
        for reached in subsets {
            let torn = last.torn(last.after.len(), reached);
            let is_complete = torn == last.after;
            assert_eq!(has_last(&original, &copy, &torn, length), is_complete, "{name}: {reached:b}");
        }
        if is_appended {
            // The file may not have grown as far as it was written.
            for _ in 0..20 {
                let end = last.before.len() + chance.below(last.after.len() - last.before.len());
                assert!(!has_last(&original, &copy, &last.torn(end, all), length), "{name}: up to {end}");
            }
        }
    }
}
