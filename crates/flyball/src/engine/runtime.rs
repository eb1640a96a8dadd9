//! What the controllers and tasks of a running operator share, and how one more controller is started among them.

use crate::cache::kind::Kind;
use crate::cache::{Followed, Mirror};
use crate::clock::Clock;
use crate::declare::check::Checks;
use crate::declare::controller::ControllerSpec;
use crate::engine::crds::Installation;
use crate::engine::runner::ControllerLoop;
use crate::engine::work::WorkQueue;
use crate::engine::{connect, daemon, timer};
use crate::event::Recorder;
use crate::leader::FencedClient;
use crate::metrics::ControllerMetrics;
use crate::{Cache, Leadership, Metrics};
use kube::Client;
use std::{
    cmp::Reverse,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The inside of a running operator. Clones differ in who leads them, and so in the client.
#[derive(Clone)]
pub(crate) struct Runtime {
    pub(crate) name: String,
    /// Writes only while `leadership` leads.
    pub(crate) api: Arc<FencedClient>,
    /// The same for authors.
    pub(crate) client: Client,
    pub(crate) leadership: Leadership,
    /// All elections that the operator stands in.
    pub(crate) elections: Vec<Leadership>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) cache: Cache,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
    /// How long work may take to end once the operator stops.
    pub(crate) grace: Duration,
    /// Nothing is reconciled before the operator's kinds are installed.
    pub(crate) installation: Arc<Installation>,
    /// Runners and tasks. Emptied when the operator ends.
    pub(crate) running: Arc<Mutex<JoinSet<()>>>,
    pub(crate) handles: Arc<Mutex<Vec<Weak<ControllerHandle>>>>,
}

/// What others may see of a controller at work.
pub(crate) struct ControllerHandle {
    pub(crate) name: String,
    pub(crate) mirror: Arc<Mirror>,
    pub(crate) queue: Arc<WorkQueue>,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) leadership: Leadership,
}

impl Runtime {
    /// Waits until this process leads and the operator's kinds are installed; says in which term.
    pub(crate) async fn begun(&self) -> u64 {
        loop {
            let term = self.leadership.begun().await;
            tokio::select! {
                biased;
                () = self.leadership.lost(term) => {}
                () = self.installation.wait() => return term,
            }
        }
    }

    /// Starts a controller with its timers and daemons, which end with the operator or with `stop`.
    pub(crate) fn control(self: &Arc<Runtime>, controller: ControllerSpec, stop: CancellationToken) {
        let followed = self.follow(controller.kinds());
        let handle = self.register(&controller);
        connect::connect(&controller, &self.cache, &handle.queue);
        for timer in &controller.timers {
            let (spec, timer) = (controller.clone(), timer.clone());
            self.spawn(timer::run(self.clone(), spec, timer, followed.clone(), stop.clone()));
        }
        for daemon in &controller.daemons {
            let (spec, daemon) = (controller.clone(), daemon.clone());
            self.spawn(daemon::run(self.clone(), spec, daemon, followed.clone(), stop.clone()));
        }
        let controller_loop = Arc::new(ControllerLoop::new(controller, self.clone(), handle, followed));
        self.spawn(controller_loop.run(stop));
    }

    /// A new queue for a controller whose kinds are followed, with its metrics, for others to see.
    pub(crate) fn register(&self, controller: &ControllerSpec) -> Arc<ControllerHandle> {
        let name = controller.name.clone();
        let metrics = self.metrics.controller(&name);
        metrics.concurrency(controller.concurrency);
        let queue = Arc::new(WorkQueue::new(controller.rate, metrics.clone()));
        let mirror = self.cache.mirror_for(&controller.kind).expect("a controller's own kind is followed");
        let leadership = self.leadership.clone();
        let handle = Arc::new(ControllerHandle { name, mirror, queue, metrics, leadership });
        self.lock_handles().push(Arc::downgrade(&handle));
        handle
    }

    /// The same for controllers that have an election of their own, and so a client that is fenced by it.
    pub(crate) fn led_by(&self, leadership: Leadership, api: Arc<FencedClient>) -> Arc<Runtime> {
        let client = api.to_client();
        Arc::new(Runtime { api, client, leadership, ..self.clone() })
    }

    /// The controllers at work.
    pub(crate) fn handles(&self) -> Vec<Arc<ControllerHandle>> {
        let mut handles = self.lock_handles();
        handles.retain(|handle| handle.strong_count() > 0);
        handles.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock_handles(&self) -> std::sync::MutexGuard<'_, Vec<Weak<ControllerHandle>>> {
        self.handles.lock().expect("nothing panics under this lock")
    }

    /// Follows kinds for as long as the answer is kept. What is needed whole comes first: metadata is part of it.
    pub(crate) fn follow<'a>(&self, kinds: impl Iterator<Item = &'a Kind>) -> Vec<Arc<Followed>> {
        let mut kinds: Vec<_> = kinds.collect();
        kinds.sort_by_key(|kind| Reverse(kind.form));
        kinds.into_iter().map(|kind| self.cache.follow(kind, &self.api, &self.metrics)).collect()
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.running.lock().expect("nothing panics under this lock");
        while running.try_join_next().is_some() {}
        running.spawn(work);
    }
}
