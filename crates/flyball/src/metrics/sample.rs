//! Metrics that are sampled at a scrape: caches, queues, objects and their phases.

use crate::cache::Mirror;
use crate::engine::runtime::Runtime;
use crate::metrics::instruments::Instruments;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

impl Instruments {
    /// Looks at the operators and sets the gauges by what is there.
    pub(super) fn sample(&self, operators: &[Arc<Runtime>]) {
        for gauges in [
            &self.cache_objects,
            &self.cache_bytes,
            &self.cache_synced,
            &self.cache_unindexed,
        ] {
            gauges.clear();
        }
        for gauges in [&self.resources, &self.phases, &self.depth] {
            gauges.clear();
        }
        for operator in operators {
            self.sample_caches(&operator.cache.mirrors());
            let mut mirrors = HashSet::new();
            for handle in operator.handles() {
                handle.metrics.sample();
                let depth = self.depth.with([&handle.name, &handle.name]);
                depth.set(depth.get() + handle.queue.depth() as f64);
                if mirrors.insert(Arc::as_ptr(&handle.mirror)) {
                    self.sample_objects(&handle.mirror);
                }
            }
        }
    }

    /// Of one kind there may be several: it is well if all of them are.
    fn sample_caches(&self, mirrors: &[Arc<Mirror>]) {
        let mut ill = HashSet::new();
        for mirror in mirrors {
            let (kind, usage) = (mirror.kind().name(), mirror.usage());
            self.cache_objects.with([kind]).inc_by(usage.objects as f64);
            self.cache_bytes.with([kind]).inc_by(usage.bytes as f64);
            self.cache_unindexed.with([kind]).inc_by(usage.unindexed as f64);
            if !mirror.health().is_well() {
                ill.insert(kind);
            }
            self.cache_synced.with([kind]).set(f64::from(u8::from(!ill.contains(kind))));
        }
    }

    fn sample_objects(&self, mirror: &Mirror) {
        let kind = mirror.kind().name();
        let (mut namespaces, mut phases) = (HashMap::new(), HashMap::new());
        for object in mirror.list(None) {
            let namespace = object.key.namespace().unwrap_or_default();
            *namespaces.entry(namespace.to_owned()).or_insert(0_u32) += 1;
            if let Some(phase) = &object.phase {
                *phases.entry(phase.clone()).or_insert(0_u32) += 1;
            }
        }
        for (namespace, count) in namespaces {
            self.resources.with([kind, &namespace]).inc_by(f64::from(count));
        }
        for (phase, count) in phases {
            self.phases.with([kind, &phase]).inc_by(f64::from(count));
        }
    }
}
