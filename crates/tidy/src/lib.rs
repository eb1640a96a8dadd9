//! The repository's rules as pure functions: text or metadata in, complaints out.
//! `tests/repository.rs` applies them to this repository; `main.rs` is the `check` command.

pub mod clock;
pub mod edges;
pub mod length;
pub mod names;
pub mod opening;
pub mod prose;
pub mod source;

/// One broken rule: where, and what to do about it.
pub type Complaint = String;
