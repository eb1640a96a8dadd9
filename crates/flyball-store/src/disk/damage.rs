//! Damages every file of a data directory in many ways, one at a time: it must be refused, or nothing must be missing.

use super::{commit_queue::Job, writer::Writer};
use crate::{Committed, Expect, Op, Options, Page, Range, Result, state::Lookup, txn::Txn};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tokio::sync::oneshot;

const OPTIONS: Options = Options {
    history_revisions: 100,
    history_bytes: 64 << 20,
    watch_bytes: 1 << 20,
    memory_bytes: 10_000,
};

#[test]
fn damage_is_refused_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("original");
    let expected = fill(&original);
    let mut outcomes = Vec::new();
    for file in files(&original) {
        let bytes = fs::read(&file).unwrap();
        for (way, damaged) in ways(&bytes) {
            let copy = directory.path().join("copy");
            copy_all(&original, &copy);
            let name = file.strip_prefix(&original).unwrap();
            match damaged {
                Some(damaged) => fs::write(copy.join(name), damaged).unwrap(),
                None => fs::remove_file(copy.join(name)).unwrap(),
            }
            let what = format!("{} {way}", name.display());
            outcomes.push((
                what.clone(),
                outcome(&copy, &expected).unwrap_or_else(|| panic!("{what}: something is lost")),
            ));
            fs::remove_dir_all(&copy).unwrap();
        }
    }
    let refused = outcomes.iter().filter(|(_, outcome)| outcome.contains("is damaged")).count();
    println!("{refused} of {} refused as damaged", outcomes.len());
    assert!(refused * 2 > outcomes.len());
}

/// What is there: the latest state, the one a hundred revisions ago, and the changes between them.
type Contents = (Page, Page, Vec<String>);

fn contents(writer: &Writer) -> Contents {
    let state = &writer.state;
    let revision = state.revision() - 90;
    let read = |range| state.find(range).and_then(|query| state.run(&query)).unwrap();
    let past = read(Range { revision: Some(revision), ..Range::default() });
    let mut watch = state.watch(Default::default(), revision).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let events = runtime.block_on(async {
        let mut events = Vec::new();
        while watch.revision() < state.revision() {
            events.push(format!("{:?}", watch.next().await.unwrap().unwrap()));
        }
        events
    });
    (read(Range::default()), past, events)
}

/// Opens a damaged directory: says how it is refused, or that nothing is missing; `None` where something is.
fn outcome(path: &Path, expected: &Contents) -> Option<String> {
    let path = path.to_owned();
    let opened = std::thread::spawn(move || Writer::open(path, OPTIONS).map(|writer| contents(&writer)));
    match opened.join() {
        Ok(Ok(found)) => (found == *expected).then(|| "harmless".to_owned()),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("is damaged so that the engine panics".to_owned()),
    }
}

/// Makes a store with tables, and a journal whose older part is also in tables.
fn fill(path: &Path) -> Contents {
    let mut writer = open(path);
    let big = "b".repeat(1 << 20);
    for n in 0..66 {
        put(&mut writer, &format!("/big/{}", n % 2), &big);
    }
    for n in 0..200 {
        put(&mut writer, &format!("/big/{}", n % 2), "small");
    }
    writer.engine().flush();
    for n in 0..300 {
        put(&mut writer, &format!("/{:03}", n % 120), &format!("{{\"n\":{n}}}"));
    }
    writer.engine().flush();
    for n in 0..60 {
        put(&mut writer, &format!("/{:03}", n * 7 % 120), &format!("{{\"last\":{n}}}"));
    }
    writer.close();
    // fjall truncates its preallocated journal when it opens it again.
    let writer = open(path);
    let contents = contents(&writer);
    writer.close();
    contents
}

pub fn open(path: &Path) -> Writer {
    open_with(path, OPTIONS)
}

pub fn open_with(path: &Path, options: Options) -> Writer {
    Writer::open(path.to_owned(), options).unwrap()
}

pub fn commit(writer: &mut Writer, ops: Vec<Op>) -> Result<Committed> {
    let (reply, mut answer) = oneshot::channel();
    writer.serve(vec![Job::Commit { txn: Txn::new(ops)?, reply }]);
    answer.try_recv().unwrap()?.answer()
}

pub fn put(writer: &mut Writer, key: &str, value: &str) {
    commit(writer, vec![Op::put(key.to_owned(), value.to_owned(), Expect::Anything)]).unwrap();
}

/// Reads a value as text.
pub fn get(writer: &Writer, key: &str) -> Result<Option<String>> {
    let entry = match writer.state.lookup(key.as_bytes()) {
        Lookup::Found(entry) => entry,
        Lookup::OnDisk(record, snapshot) => writer.state.fetch(&record, &snapshot)?,
    };
    Ok(entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()))
}

/// A file in several conditions worse than it was; `None` is without it.
fn ways(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut ways = vec![("missing".to_owned(), None), ("empty".to_owned(), Some(Vec::new()))];
    let places = [1, length / 3, length / 2, length.saturating_sub(3)];
    for at in places.into_iter().filter(|at| *at < length) {
        let mut damaged = bytes.to_owned();
        damaged[at] ^= 0x10;
        ways.push((format!("with a bit of byte {at} the other way"), Some(damaged)));
        let mut damaged = bytes.to_owned();
        damaged[at..length.min(at + 600)].fill(0);
        ways.push((format!("with zeros from byte {at}"), Some(damaged)));
        ways.push((format!("cut off at byte {at}"), Some(bytes[..at].to_owned())));
    }
    ways
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for file in fs::read_dir(path).unwrap().map(|file| file.unwrap().path()) {
        match file.is_dir() {
            true => files.extend(self::files(&file)),
            false if file.file_name().is_some_and(|name| name == "lock") => {}
            false => files.push(file),
        }
    }
    files.sort();
    files
}

pub fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(io::Result::unwrap) {
        let to = to.join(file.file_name());
        if file.path().is_dir() {
            copy_all(&file.path(), &to)
        } else {
            fs::copy(file.path(), to).unwrap();
        }
    }
}
