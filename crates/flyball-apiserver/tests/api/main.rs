//! The API server as its clients see it, in one process and on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ask;
mod custom;
mod objects;
mod watching;
