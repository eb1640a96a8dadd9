//! Gives each pod an address of its own.

use crate::node::Network;
use flyball::Key;
use k8s_openapi::api::core::v1::Pod;
use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

/// The addresses that are in use.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    by_pod: HashMap<Key, Ipv4Addr>,
    pods: HashMap<Ipv4Addr, Key>,
    /// The last number that was given out on each node's network.
    last: HashMap<Ipv4Addr, u16>,
}

impl Addresses {
    /// Takes note of pods that have addresses already.
    pub(super) fn seed(&self, pods: &[Arc<Pod>]) {
        let mut used = self.used.lock().expect("nothing panics under this lock");
        for pod in pods {
            if let Some(address) = address_of(pod) {
                used.take(Key::of(&**pod), address);
            }
        }
    }

    /// The address of a pod: the one it has, or the next that is free on its node's network.
    pub(super) fn of(&self, pod: &Pod, network: &Network) -> Ipv4Addr {
        let mut used = self.used.lock().expect("nothing panics under this lock");
        let key = Key::of(pod);
        let known = address_of(pod).or_else(|| used.by_pod.get(&key).copied());
        let address = known.unwrap_or_else(|| used.next(network));
        used.take(key, address);
        address
    }

    /// Takes back the address of a pod that is gone.
    pub(super) fn forget(&self, key: &Key) {
        let mut used = self.used.lock().expect("nothing panics under this lock");
        if let Some(address) = used.by_pod.remove(key) {
            used.pods.remove(&address);
        }
    }
}

impl Used {
    fn take(&mut self, key: Key, address: Ipv4Addr) {
        self.by_pod.insert(key.clone(), address);
        self.pods.insert(address, key);
    }

    /// The next address that no pod has; a network has room for more pods than its node.
    fn next(&mut self, network: &Network) -> Ipv4Addr {
        let last = self.last.entry(network.address).or_default();
        for _ in 0..=u16::MAX {
            *last = last.wrapping_add(1).max(2);
            let address = network.pod(*last);
            if !self.pods.contains_key(&address) {
                return address;
            }
        }
        network.address
    }
}

fn address_of(pod: &Pod) -> Option<Ipv4Addr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, address: Option<&str>) -> Arc<Pod> {
        let metadata = json!({ "namespace": "default", "name": name });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata, "status": { "podIP": address } })).unwrap())
    }

    #[test]
    fn no_two_pods_have_the_same_address() {
        let (addresses, network) = (Addresses::default(), Network::of(0));
        addresses.seed(&[pod("before", Some("10.244.0.2"))]);
        let of = |name: &str, has: Option<&str>| addresses.of(&pod(name, has), &network).to_string();
        assert_eq!(of("a", None), "10.244.0.3");
        assert_eq!(of("b", None), "10.244.0.4");
        assert_eq!(of("a", None), "10.244.0.3");
        addresses.forget(&Key::namespaced("default", "before"));
        assert_eq!(of("before", Some("10.244.0.2")), "10.244.0.2");
        assert_eq!(addresses.of(&pod("c", None), &Network::of(1)).to_string(), "10.243.0.2");
    }
}
