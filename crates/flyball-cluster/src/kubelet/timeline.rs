//! Since when each pod has been in its stage, so that stages can take time without anybody waiting for them.

use flyball::Key;
use k8s_openapi::api::core::v1::Pod;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};
use tokio::time::Instant;

/// A stage of a pod's life that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Creating,
    Running,
    Ending,
}

/// The current stage of each pod. After a restart every stage begins anew.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    stages: Mutex<HashMap<Key, Entry>>,
}

/// A pod's uid, its stage, and since when it is in it.
type Entry = (Option<String>, Stage, Instant);

impl Timeline {
    /// How much of `duration` is left in a stage, which begins now if the pod was not in it.
    pub(super) fn wait(&self, pod: &Pod, stage: Stage, duration: Duration) -> Option<Duration> {
        let now = Instant::now();
        let mut stages = self.lock();
        let entry = stages.entry(Key::of(pod)).or_insert_with(|| (pod.metadata.uid.clone(), stage, now));
        if entry.0 != pod.metadata.uid || entry.1 != stage {
            *entry = (pod.metadata.uid.clone(), stage, now);
        }
        let left = duration.saturating_sub(now.duration_since(entry.2));
        (!left.is_zero()).then_some(left)
    }

    /// Whether a pod has not been in a stage yet.
    pub(super) fn begins(&self, pod: &Pod, stage: Stage) -> bool {
        let stages = self.lock();
        let known = stages.get(&Key::of(pod));
        known.is_none_or(|(uid, known, _)| *uid != pod.metadata.uid || *known != stage)
    }

    /// Forgets a pod that is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.stages.lock().expect("nothing panics under this lock")
    }
}
