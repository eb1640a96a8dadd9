//! Requests: the info and options parsed from them, and the context that is carried through the pipeline.

pub mod context;
pub mod info;
pub(crate) mod options;
