//! Checks fjall's files before fjall reads them: it trusts some of them blindly, and starts empty without others. Knows the
//! layout of fjall 3.1.13 and lsm-tree 3.1.10, which the workspace pins.

use super::{checkpoint::Checkpoint, directory::Directory, journal};
use crate::Result;
use std::{fs, io};
use xxhash_rust::xxh3::xxh3_128;

/// fjall's own keyspace, the records and the checkpoint.
const KEYSPACES: [&str; 3] = ["keyspaces/0", "keyspaces/1", "keyspaces/2"];

/// Checks everything that fjall does not; returns the last checkpoint that its journals hold.
pub(crate) fn verify(directory: &Directory) -> Result<Option<Checkpoint>> {
    read(directory, "version")?;
    for keyspace in KEYSPACES {
        verify_manifest(directory, keyspace)?;
    }
    journal::recover(directory)
}

/// Checks the list of a keyspace's tables against its hash: `current` names the list by number, and holds the hash.
fn verify_manifest(directory: &Directory, keyspace: &str) -> Result<()> {
    let name = format!("{keyspace}/current");
    let current = read(directory, &name)?;
    let Some((number, rest)) = current.split_first_chunk() else {
        return Err(directory.damaged(format!("store/{name}")));
    };
    let name = format!("{keyspace}/v{}", u64::from_le_bytes(*number));
    let list = read(directory, &name)?;
    if rest.strip_suffix(&[0]) != Some(&xxh3_128(&list).to_le_bytes()) {
        return Err(directory.damaged(format!("store/{name}")));
    }
    Ok(())
}

fn read(directory: &Directory, name: &str) -> Result<Vec<u8>> {
    fs::read(directory.store().join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => directory.damaged(format!("store/{name} is missing")),
        _ => directory.failed(error),
    })
}
