//! A whole cluster in the process, on a paused clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod autoscaler;
mod behaviour;
mod collector;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod endpoints;
mod event;
mod job;
mod namespace;
mod node;
mod node_lifecycle;
mod policy;
mod quota;
mod replica_set;
mod replication_controller;
mod scale;
mod stateful_set;
mod volume;
mod web;
