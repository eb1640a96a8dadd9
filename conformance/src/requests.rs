//! Requests written as data under `requests/`: each file is a script whose requests are sent in order to a server.
//! `script` reads them, `send` sends them, `normal` takes out what must differ, `compare` finds what should not.

pub mod compare;
pub mod normal;
pub mod record;
pub mod script;
pub mod send;
pub mod webhooks;

use std::path::PathBuf;

/// Where the scripts are: in the source tree, so that a new request needs no build.
pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/requests"))
}
