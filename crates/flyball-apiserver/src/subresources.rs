//! Endpoints that are no object of their own: scale, binding, eviction, token and reviews.

pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod review;
pub(crate) mod scale;
pub(crate) mod token;
