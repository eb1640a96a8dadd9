//! What a mapper of [`Controller::watches`](crate::Controller::watches) answers with.

use crate::{Key, Result};
use std::collections::{BTreeSet, HashSet};

/// The objects that a mapper names: a key if there is one, a collection of keys, or a [`Result`] of these.
///
/// A mapper that fails triggers no reconcile. The failure is logged, counted in `flyball_mapper_errors_total`, and shown by
/// [`Running::queues`](crate::Running::queues) and at `/debug/errors`.
pub trait Mapped {
    /// The keys, or why there are none.
    fn into_keys(self) -> Result<Vec<Key>>;
}

impl<M: Mapped> Mapped for Result<M> {
    fn into_keys(self) -> Result<Vec<Key>> {
        self?.into_keys()
    }
}

impl Mapped for Vec<Key> {
    fn into_keys(self) -> Result<Vec<Key>> {
        Ok(self)
    }
}

impl<const N: usize> Mapped for [Key; N] {
    fn into_keys(self) -> Result<Vec<Key>> {
        Ok(self.into())
    }
}

impl Mapped for Option<Key> {
    fn into_keys(self) -> Result<Vec<Key>> {
        Ok(self.into_iter().collect())
    }
}

impl Mapped for BTreeSet<Key> {
    fn into_keys(self) -> Result<Vec<Key>> {
        Ok(self.into_iter().collect())
    }
}

impl Mapped for HashSet<Key> {
    fn into_keys(self) -> Result<Vec<Key>> {
        Ok(self.into_iter().collect())
    }
}
