//! Work in motion: the queue, the workers that reconcile, and the connection from caches to queues.

pub(crate) mod connect;
pub(crate) mod controlled;
pub(crate) mod queue;
pub(crate) mod runner;
pub(crate) mod running;
pub(crate) mod shared;
pub(crate) mod work;
