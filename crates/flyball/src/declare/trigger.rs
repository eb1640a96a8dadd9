//! Lets something outside the cluster ask for a reconcile: a channel, a timer, a webhook that came in.

use crate::cache::Mirror;
use crate::engine::queue::Priority;
use crate::engine::work::WorkQueue;
use crate::{Error, Key, Result, Why};
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
/// // In the handler of an incoming webhook, for example:
/// billing.reconcile(flyball::Key::namespaced("default", "ada"))?;
/// # Ok::<_, flyball::Error>(())
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
    ///
    /// Fails, and asks nothing, if a controller that takes this trigger reconciles a namespaced kind and the key is a bare name,
    /// or a cluster-scoped kind and the key has a namespace.
    pub fn reconcile(&self, key: impl Into<Key>) -> Result<()> {
        let (key, live) = (key.into(), self.live());
        for (_, mirror) in &live {
            key.clone().for_kind(mirror.kind()).map_err(Error::permanent)?;
        }
        for (queue, _) in &live {
            queue.add(key.clone(), Priority::Live, self.why());
        }
        Ok(())
    }

    /// Asks for a reconcile of every object that is cached, after whatever happens meanwhile.
    pub fn reconcile_all(&self) {
        for (queue, mirror) in self.live() {
            for object in mirror.list(None) {
                queue.add(object.key.clone(), Priority::Background, self.why());
            }
        }
    }

    pub(crate) fn connect(&self, queue: &Arc<WorkQueue>, mirror: &Arc<Mirror>) {
        let mut queues = self.inner.queues.lock().expect("nothing panics under this lock");
        queues.retain(|(queue, _)| queue.strong_count() > 0);
        queues.push((Arc::downgrade(queue), Arc::downgrade(mirror)));
    }

    fn why(&self) -> Why {
        Why::Asked(self.inner.name.clone())
    }

    /// The controllers that take this trigger and run.
    fn live(&self) -> Vec<(Arc<WorkQueue>, Arc<Mirror>)> {
        let queues = self.inner.queues.lock().expect("nothing panics under this lock");
        let live = queues.iter().filter_map(|(queue, mirror)| Some((queue.upgrade()?, mirror.upgrade()?)));
        live.collect()
    }
}
