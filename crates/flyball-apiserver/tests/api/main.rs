//! The API server as its clients see it, in one process and on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admitting;
mod ask;
mod auditing;
mod authenticating;
mod authorizing;
mod builtins;
mod converting;
mod custom;
mod definitions;
mod deleting;
mod disconnecting;
mod evicting;
mod flow_control;
mod hook;
mod kinds;
mod limits;
mod listing;
mod mutations;
mod objects;
mod outages;
mod pipeline;
mod policies;
mod quotas;
mod racing;
mod reviewed;
mod rules;
mod sharing;
mod slow_store;
mod versions;
mod watching;
mod webhooks;
mod writing;
