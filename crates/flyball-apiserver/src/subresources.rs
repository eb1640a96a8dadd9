//! Endpoints that are no object of their own: scale, binding, eviction and reviews.

pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod review;
pub(crate) mod scale;
