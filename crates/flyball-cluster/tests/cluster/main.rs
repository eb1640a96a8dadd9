//! A whole cluster in the process, on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod collector;
mod deployment;
mod event;
mod namespace;
mod node;
mod replica_set;
mod web;
