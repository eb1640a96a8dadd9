//! An operator as a program: arguments, configuration, logs, probes, CRDs and manifests.

pub(crate) mod admin;
pub(crate) mod args;
pub mod config;
pub(crate) mod crds;
pub(crate) mod inspect;
pub(crate) mod log;
pub(crate) mod manifests;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod tls;
pub(crate) mod trace;
