//! What an author declares: operators, controllers, reconcilers, and the values they are made of.

pub(crate) mod action;
pub(crate) mod backoff;
pub(crate) mod check;
pub(crate) mod controller;
pub(crate) mod daemon;
pub(crate) mod dynamic;
pub(crate) mod error;
pub(crate) mod key;
pub(crate) mod mapped;
pub(crate) mod operator;
pub(crate) mod predicate;
pub(crate) mod reconciler;
pub(crate) mod selection;
pub(crate) mod task;
pub(crate) mod timer;
pub(crate) mod trigger;
pub(crate) mod why;
