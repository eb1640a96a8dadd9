//! What the controllers and tasks of a running operator share, and how one more controller is started among them.

use crate::{
    Cache, Controller, cache::Followed, clock::Clock, kind::Kind, recorder::Recorder, runner::Runner, trigger,
    work::WorkQueue,
};
use kube::Client;
use std::{
    cmp::Reverse,
    sync::{Arc, Mutex},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The inside of a running operator.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
    /// Runners and tasks. Emptied when the operator ends.
    pub(crate) running: Mutex<JoinSet<()>>,
}

impl Shared {
    /// Starts a controller, which ends with the operator or with `stop`.
    pub(crate) fn control(self: &Arc<Shared>, controller: Controller, stop: CancellationToken) {
        let queue = Arc::new(WorkQueue::default());
        let followed = self.follow(controller.kinds());
        trigger::connect(&controller, &self.cache, &queue);
        let runner = Runner::new(controller, self.clone(), queue, followed);
        self.spawn(runner.run(stop));
    }

    /// Follows kinds for as long as the answer is kept. What is needed whole comes first: metadata is part of it.
    pub(crate) fn follow<'a>(&self, kinds: impl Iterator<Item = &'a Kind>) -> Vec<Arc<Followed>> {
        let mut kinds: Vec<_> = kinds.collect();
        kinds.sort_by_key(|kind| Reverse(kind.form));
        kinds.into_iter().map(|kind| self.cache.follow(kind, &self.client)).collect()
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.running.lock().expect("nothing panics under this lock");
        while running.try_join_next().is_some() {}
        running.spawn(work);
    }
}
