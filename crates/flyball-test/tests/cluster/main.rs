//! The cluster that tests import, tested by itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failures;
mod production;
mod rights;
mod verbs;
