//! The framework on an API server in the same process, on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod administering;
mod admitting;
mod applying;
mod claiming;
mod converting;
mod deleting;
mod dynamic;
mod electing;
mod electing_world;
mod failing;
mod hanging;
mod installing;
mod listening;
mod manifests;
mod mapping;
mod measuring;
mod objects;
mod optional;
mod overtaking;
mod periodic;
mod pruning;
mod queueing;
mod reading;
mod reporting;
mod restarting;
mod reviewing;
mod running;
mod selecting;
mod steps;
mod telling;
mod triggering;
mod visible_failures;
mod waiting;
mod watching;
mod world;
mod writing;
