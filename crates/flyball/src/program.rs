//! An operator as a program: arguments, configuration, logs, probes, webhooks and manifests. The feature `program`, on by default.

pub(crate) mod admin;
pub(crate) mod args;
pub mod config;
pub(crate) mod log;
pub(crate) mod manifests;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod tls;
pub(crate) mod traces;
pub(crate) mod webhook;
