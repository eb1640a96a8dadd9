//! Lets something outside the cluster ask for a reconcile: a channel, a timer, a webhook that came in.

use crate::cache::Mirror;
use crate::engine::queue::Priority;
use crate::engine::work::WorkQueue;
use crate::{Key, Why};
use std::sync::{Arc, Mutex, Weak};

/// A handle that brings objects into the queue of every controller that [takes it](crate::Controller::triggered_by).
///
/// It may be kept anywhere and used at any time. What is asked for while no such controller runs needs no answer: a
/// controller that starts reconciles every object.
///
/// ```
/// # use flyball::{Action, Context, Controller, Trigger};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// let billing = Trigger::new("billing");
/// let controller = Controller::new(|_: std::sync::Arc<ConfigMap>, _: Context| async { Ok(Action::await_change()) });
/// let controller = controller.triggered_by(&billing);
/// // In the handler of a webhook, or wherever else the news arrive:
/// billing.reconcile(flyball::Key::namespaced("default", "ada"));
/// ```
#[derive(Clone, Debug)]
pub struct Trigger {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: Arc<String>,
    queues: Mutex<Vec<(Weak<WorkQueue>, Weak<Mirror>)>>,
}

impl Trigger {
    /// A trigger that nothing listens to yet. Its name is the reason that the log gives for what it asks for.
    pub fn new(name: impl Into<String>) -> Trigger {
        let (name, queues) = (Arc::new(name.into()), Mutex::default());
        Trigger { inner: Arc::new(Inner { name, queues }) }
    }

    /// Asks for a reconcile of one object.
    pub fn reconcile(&self, key: impl Into<Key>) {
        let key = key.into();
        self.each(|queue, _| queue.add(key.clone(), Priority::Live, self.why()));
    }

    /// Asks for a reconcile of every object that is cached, after whatever happens meanwhile.
    pub fn reconcile_all(&self) {
        self.each(|queue, mirror| {
            for object in mirror.list(None) {
                queue.add(object.key.clone(), Priority::Background, self.why());
            }
        });
    }

    pub(crate) fn connect(&self, queue: &Arc<WorkQueue>, mirror: &Arc<Mirror>) {
        let mut queues = self.inner.queues.lock().expect("nothing panics under this lock");
        queues.retain(|(queue, _)| queue.strong_count() > 0);
        queues.push((Arc::downgrade(queue), Arc::downgrade(mirror)));
    }

    fn why(&self) -> Why {
        Why::Asked(self.inner.name.clone())
    }

    fn each(&self, ask: impl Fn(&WorkQueue, &Mirror)) {
        let queues = self.inner.queues.lock().expect("nothing panics under this lock").clone();
        let live = queues.iter().filter_map(|(queue, mirror)| Some((queue.upgrade()?, mirror.upgrade()?)));
        live.for_each(|(queue, mirror)| ask(&queue, &mirror));
    }
}
