//! Cases written as data under `corpus/`: a good object, small changes of it, and what a real server made of each.
//! `family` reads them, `ask` asks a server, `recorded` keeps what the real one said.

pub mod ask;
pub mod family;
pub mod recorded;

use std::path::PathBuf;

/// Where the cases are: in the source tree, so that a new case needs no build.
pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))
}
