//! What a request asks for: its path, parameters and headers, read once and carried to where it is answered.

pub mod context;
pub mod info;
pub(crate) mod options;
