//! What any store is compared with: a model of it as simple as can be, and random operations on both.

mod chance;
mod commits;
mod expected;
mod model;
mod watches;

pub use chance::Chance;
pub use model::Model;
