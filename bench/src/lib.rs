//! The same work on Flyball and on its peers: one module a group of measurements, one table for all of them.

pub mod cel;
pub mod crds;
pub mod figure;
pub mod frameworks;
pub mod hello;
pub mod kinds;
pub mod reconciles;
pub mod report;
pub mod schema;
pub mod server;
pub mod store;
pub mod target;
