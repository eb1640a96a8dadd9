//! Work in motion: the queue, the workers that reconcile, and the connection from caches to queues.

pub(crate) mod connect;
pub(crate) mod crds;
pub(crate) mod daemon;
pub(crate) mod dynamic_controller;
pub(crate) mod inspect;
pub(crate) mod queue;
pub(crate) mod runner;
pub(crate) mod running;
pub(crate) mod runtime;
pub(crate) mod stopping;
pub(crate) mod storage;
pub(crate) mod task;
pub(crate) mod timer;
pub(crate) mod trace;
pub(crate) mod work;
