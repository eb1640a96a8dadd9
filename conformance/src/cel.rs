//! Validation rules in CEL, decided by a real kube-apiserver: `rules` reads the cases of `corpus/cel`, `decide` asks a server.

pub mod decide;
pub mod rules;
pub mod textproto;

use std::path::PathBuf;

/// Whether our server runs validation rules; until it does, only the real server is compared with the recorded answers.
pub const SERVER_RUNS_RULES: bool = false;

/// Where the cases are: in the source tree, so that a new case needs no build.
pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/cel"))
}
