//! CEL beside the real thing: validation rules on a kube-apiserver (`rules`, `decide`), cel-spec's tests (`spec`),
//! random expressions on cel-go (`random`).

pub mod canonical;
pub mod decide;
pub mod random;
pub mod rules;
pub mod spec;
pub mod textproto;

use std::path::PathBuf;

use flyball_cel::{Env, Library};

/// Where the cases are: in the source tree, so that a new case needs no build.
pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/cel"))
}

/// The language with every library that it has of its own, as cel-spec's tests need it.
fn language() -> Env {
    Env::new([
        Library::Standard,
        Library::Optional(u32::MAX),
        Library::TwoVariables,
        Library::Bindings,
        Library::Strings(u32::MAX),
        Library::Lists(u32::MAX),
        Library::Math(u32::MAX),
        Library::Sets,
        Library::Encoders,
    ])
    .quoted_identifiers()
}

/// The environment of a CustomResourceDefinition's rules.
fn kubernetes() -> Env {
    Env::kubernetes()
}
