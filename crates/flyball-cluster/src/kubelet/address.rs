//! Gives each pod an address of its own.

use flyball::{Key, Result};
use k8s_openapi::api::core::v1::Pod;
use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

/// The addresses that are in use, of the node's pod network.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    used: Mutex<Option<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    by_pod: HashMap<Key, Ipv4Addr>,
    pods: HashMap<Ipv4Addr, Key>,
    last: u16,
}

impl Addresses {
    /// The address of a pod: the one it has, or the next that is free. `pods` are all pods, asked for once.
    pub(super) fn of(&self, pod: &Pod, pods: impl FnOnce() -> Result<Vec<Arc<Pod>>>) -> Result<String> {
        let mut used = self.used.lock().expect("nothing panics under this lock");
        let used = match &mut *used {
            Some(used) => used,
            none => none.insert(Used::by(&pods()?)),
        };
        let key = Key::of(pod);
        let address = address_of(pod).or_else(|| used.by_pod.get(&key).copied()).unwrap_or_else(|| used.next());
        used.take(key, address);
        Ok(address.to_string())
    }

    /// Takes back the address of a pod that is gone.
    pub(super) fn forget(&self, key: &Key) {
        let mut used = self.used.lock().expect("nothing panics under this lock");
        if let Some(used) = used.as_mut()
            && let Some(address) = used.by_pod.remove(key)
        {
            used.pods.remove(&address);
        }
    }
}

impl Used {
    fn by(pods: &[Arc<Pod>]) -> Used {
        let mut used = Used::default();
        for pod in pods {
            if let Some(address) = address_of(pod) {
                used.take(Key::of(&**pod), address);
            }
        }
        used
    }

    fn take(&mut self, key: Key, address: Ipv4Addr) {
        self.by_pod.insert(key.clone(), address);
        self.pods.insert(address, key);
    }

    /// The next address that nobody has; the network has room for more pods than its node.
    fn next(&mut self) -> Ipv4Addr {
        loop {
            self.last = self.last.wrapping_add(1).max(2);
            let [high, low] = self.last.to_be_bytes();
            let address = Ipv4Addr::new(10, 244, high, low);
            if !self.pods.contains_key(&address) {
                return address;
            }
        }
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
        let addresses = Addresses::default();
        let known = || Ok(vec![pod("before", Some("10.244.0.2"))]);
        let none = || Ok(Vec::new());
        assert_eq!(addresses.of(&pod("a", None), known).unwrap(), "10.244.0.3");
        assert_eq!(addresses.of(&pod("b", None), none).unwrap(), "10.244.0.4");
        assert_eq!(addresses.of(&pod("a", None), none).unwrap(), "10.244.0.3");
        addresses.forget(&Key::namespaced("default", "before"));
        assert_eq!(addresses.of(&pod("before", Some("10.244.0.2")), none).unwrap(), "10.244.0.2");
    }
}
