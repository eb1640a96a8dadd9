//! Checks the engine's files before the engine reads them: it trusts some of them blindly, and starts empty without others.

use super::{directory::Directory, frame::Frame, replay, sector::is_zero};
use crate::Error;
use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};
use xxhash_rust::xxh3::xxh3_128;

/// What keeps the engine's files from being used.
pub(crate) enum Flaw {
    /// A file could not be read.
    Unread(io::Error),
    /// A file is not as it was written.
    Damaged(String),
}

impl Flaw {
    pub fn at(self, directory: &Directory) -> Error {
        match self {
            Flaw::Unread(error) => directory.failed(error),
            Flaw::Damaged(reason) => directory.damaged(reason),
        }
    }
}

/// Checks everything that the engine does not.
pub(crate) fn verify(engine: &Path) -> Result<(), Flaw> {
    present(engine, "version")?;
    // The engine's own keyspace, and ours.
    for keyspace in ["keyspaces/0", "keyspaces/1"] {
        verify_manifest(engine, keyspace)?;
    }
    verify_journals(engine)
}

/// Checks the engine's own journal, in which it notes its keyspaces: it cuts it off at the first thing that it does not
/// understand.
fn verify_journals(engine: &Path) -> Result<(), Flaw> {
    let journals = replay::files(engine)?;
    if journals.is_empty() {
        return Err(Flaw::Damaged("the engine's journal is missing".to_owned()));
    }
    for (number, path) in journals {
        let bytes = read(&path).map_err(Flaw::Unread)?;
        let mut rest = 0;
        while let Ok(frame) = Frame::read(&bytes[rest..]) {
            rest += frame.length;
        }
        // The engine writes to it only while a store is made.
        if !is_zero(&bytes[rest..]) {
            return Err(Flaw::Damaged(format!("store/{number}.jnl from byte {rest} on")));
        }
    }
    Ok(())
}

/// Reads a file without the zeros that make room at its end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut length, mut chunk) = (Vec::new(), 0, [0; 64 << 10]);
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            return Ok(bytes);
        }
        if !is_zero(&chunk[..count]) {
            bytes.resize(length, 0);
            bytes.extend_from_slice(&chunk[..count]);
        }
        length += count;
    }
}

/// Checks the list of a keyspace's tables against its hash: `current` names the list by number, and holds the hash.
fn verify_manifest(engine: &Path, keyspace: &str) -> Result<(), Flaw> {
    let name = format!("{keyspace}/current");
    let current = present(engine, &name)?;
    let Some((number, rest)) = current.split_first_chunk() else {
        return Err(Flaw::Damaged(format!("store/{name}")));
    };
    let name = format!("{keyspace}/v{}", u64::from_le_bytes(*number));
    let list = present(engine, &name)?;
    if rest.strip_suffix(&[0]) != Some(&xxh3_128(&list).to_le_bytes()) {
        return Err(Flaw::Damaged(format!("store/{name}")));
    }
    Ok(())
}

fn present(engine: &Path, name: &str) -> Result<Vec<u8>, Flaw> {
    fs::read(engine.join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Flaw::Damaged(format!("store/{name} is missing")),
        _ => Flaw::Unread(error),
    })
}
