//! A simple model of a store, and random operations on both, to compare every backend with.

mod chance;
mod commits;
mod expected;
mod model;
mod watches;

pub use chance::Chance;
pub use model::Model;
