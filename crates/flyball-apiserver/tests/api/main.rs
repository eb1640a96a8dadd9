//! The API server as its clients see it, in one process and on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ask;
mod authenticating;
mod authorizing;
mod builtins;
mod custom;
mod definitions;
mod deleting;
mod disconnecting;
mod evicting;
mod kinds;
mod limits;
mod listing;
mod objects;
mod outages;
mod pipeline;
mod racing;
mod rules;
mod sharing;
mod slow_store;
mod versions;
mod watching;
mod writing;
