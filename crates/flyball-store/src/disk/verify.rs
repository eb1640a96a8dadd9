//! Checks fjall's files before fjall reads them: it trusts some of them blindly, and starts empty without others. Knows the
//! layout of fjall 3.1.13 and lsm-tree 3.1.10, which the workspace pins.

use super::{checkpoint::Checkpoint, directory::Directory, journal};
use crate::Error;
use std::{fs, io, path::Path};
use xxhash_rust::xxh3::xxh3_128;

/// fjall's own keyspace, the records and the checkpoint.
const KEYSPACES: [&str; 3] = ["keyspaces/0", "keyspaces/1", "keyspaces/2"];

/// Why fjall's files cannot be used.
#[derive(Debug)]
pub(crate) enum VerifyError {
    /// A file could not be read.
    Unread(io::Error),
    /// A file is not as it was written.
    Damaged(String),
}

impl VerifyError {
    pub fn at(self, directory: &Directory) -> Error {
        match self {
            VerifyError::Unread(error) => directory.failed(error),
            VerifyError::Damaged(reason) => directory.damaged(reason),
        }
    }
}

/// Checks everything that fjall does not; returns the last checkpoint that its journals hold.
pub(crate) fn verify(store: &Path) -> Result<Option<Checkpoint>, VerifyError> {
    present(store, "version")?;
    for keyspace in KEYSPACES {
        verify_manifest(store, keyspace)?;
    }
    journal::recover(store)
}

/// Checks the list of a keyspace's tables against its hash: `current` names the list by number, and holds the hash.
fn verify_manifest(store: &Path, keyspace: &str) -> Result<(), VerifyError> {
    let name = format!("{keyspace}/current");
    let current = present(store, &name)?;
    let Some((number, rest)) = current.split_first_chunk() else {
        return Err(VerifyError::Damaged(format!("store/{name}")));
    };
    let name = format!("{keyspace}/v{}", u64::from_le_bytes(*number));
    let list = present(store, &name)?;
    if rest.strip_suffix(&[0]) != Some(&xxh3_128(&list).to_le_bytes()) {
        return Err(VerifyError::Damaged(format!("store/{name}")));
    }
    Ok(())
}

fn present(store: &Path, name: &str) -> Result<Vec<u8>, VerifyError> {
    fs::read(store.join(name)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => VerifyError::Damaged(format!("store/{name} is missing")),
        _ => VerifyError::Unread(error),
    })
}
