//! Cluster IPs and node ports of Services. Each allocation is a key of its own, written and removed in the commit that
//! writes the Service, so that no two Services ever share one.
// pkg/registry/core/service/storage/alloc.go

mod node_ports;

use crate::registry::object;
use crate::request::options::causes;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::violation::Violation;
use flyball_store::{Expect, Op, Range, Store};
use node_ports::NodePorts;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::net::Ipv4Addr;
use uuid::Uuid;

/// The cluster IP of the Service `kubernetes`: the first of 10.96.0.0/12.
pub(crate) const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The /24 networks of 10.96.0.0/12. Addresses are looked for in one of them at a time.
const NETWORKS: Pool = Pool { first: 0x000a_6000, size: 4096, reserved: 1 };
const ADDRESSES: std::ops::RangeInclusive<u32> = 0x0a60_0001..=0x0a6f_fffe;
const ADDRESS_PREFIX: &str = "flyball/addresses/";
const PORT_PREFIX: &str = "flyball/ports/";
const FULL: &str = "range is full";

/// A range of numbers. The first `reserved` ones are only given out when the others are taken, so that they are
/// likely to be free for Services that ask for them by number.
// pkg/registry/core/service/allocator/bitmap.go, randomScanStrategyWithOffset
#[derive(Clone, Copy)]
struct Pool {
    first: u32,
    size: u32,
    reserved: u32,
}

impl Pool {
    /// The numbers that are given out first, and the reserved ones.
    fn parts(self) -> [std::ops::Range<u32>; 2] {
        let middle = self.first + self.reserved;
        [middle..self.first + self.size, self.first..middle]
    }

    /// Every number once, from a random one on, the reserved ones last.
    fn scan(self) -> impl Iterator<Item = u32> {
        self.parts().into_iter().flat_map(|part| {
            let size = part.end - part.start;
            let start = random() % size.max(1);
            (0..size).map(move |step| part.start + (start + step) % size)
        })
    }
}

fn random() -> u32 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    (high >> 32) as u32
}

/// Allocates what a Service needs and lacks.
pub(crate) struct ServiceAllocator<'a> {
    store: &'a Store,
}

impl<'a> ServiceAllocator<'a> {
    /// An allocator over the allocations that a store holds.
    pub fn new(store: &'a Store) -> ServiceAllocator<'a> {
        ServiceAllocator { store }
    }

    /// Fills in the cluster IP and the node ports of a Service. Nothing is claimed until [`ops`] are committed.
    pub async fn allocate(&self, service: &mut Value, live: Option<&Value>) -> Result<()> {
        let name = object::name(service).to_owned();
        let invalid = |violation| Status::invalid("", "Service", &name, causes(vec![violation]));
        let spec = &mut service["spec"];
        let old = live.map_or(&Value::Null, |live| &live["spec"]);
        if spec["type"] != "ExternalName" {
            self.allocate_address(spec, old, &name).await?.map_err(invalid)?;
        }
        match NodePorts::needed(spec, old) {
            true => {
                let taken = self.taken_ports().await?;
                NodePorts::new(taken).allocate(spec, live.map(|live| &live["spec"]), &name)
            }
            false => Ok(()),
        }
    }

    async fn allocate_address(&self, spec: &mut Value, old: &Value, name: &str) -> Result<Result<(), Violation>> {
        let given = spec["clusterIP"].as_str().unwrap_or_default();
        if given == "None" {
            return Ok(Ok(()));
        }
        if given.is_empty() {
            let address = self.free_address(name).await?.to_string();
            spec["clusterIPs"] = json!([address]);
            spec["clusterIP"] = address.into();
            return Ok(Ok(()));
        }
        if old["type"] != "ExternalName" && old["clusterIP"] == given {
            return Ok(Ok(()));
        }
        let address = given.parse::<Ipv4Addr>().map_or(0, u32::from);
        let why = match ADDRESSES.contains(&address) {
            false => "the provided network does not match the current range",
            true if self.is_taken(format!("{ADDRESS_PREFIX}{given}")).await? => "provided IP is already allocated",
            true => return Ok(Ok(())),
        };
        let why = format!("failed to allocate IP {given}: {why}");
        Ok(Err(Violation::invalid("spec.clusterIPs", spec["clusterIPs"].clone(), &why)))
    }

    async fn is_taken(&self, key: String) -> Result<bool> {
        let entry = self.store.get(key).await.map_err(Status::store_failed)?;
        Ok(entry.is_some())
    }

    /// A random address that no Service has. Reads one /24 network at a time, so at most 4,096 ranges.
    async fn free_address(&self, name: &str) -> Result<Ipv4Addr> {
        for network in NETWORKS.scan() {
            let [_, a, b, c] = network.to_be_bytes();
            let taken: HashSet<u32> = self.taken(&format!("{ADDRESS_PREFIX}{a}.{b}.{c}.")).await?;
            let hosts = Pool { first: 0, size: 256, reserved: 0 };
            let address = |host: u32| (network << 8) | host;
            let is_free = |host: &u32| !taken.contains(host) && ADDRESSES.contains(&address(*host));
            if let Some(host) = hosts.scan().find(is_free) {
                return Ok(Ipv4Addr::from(address(host)));
            }
            tokio::task::yield_now().await;
        }
        let why = format!("failed to allocate a serviceIP for Service {name:?}: {FULL}");
        Err(Status::internal(why))
    }

    async fn taken_ports(&self) -> Result<HashSet<u32>> {
        self.taken(PORT_PREFIX).await
    }

    /// The numbers that follow a prefix in the keys that exist.
    async fn taken(&self, prefix: &str) -> Result<HashSet<u32>> {
        let range = Range::prefix(Bytes::copy_from_slice(prefix.as_bytes()));
        let page = self.store.range(range).await.map_err(Status::store_failed)?;
        let number = |key: &[u8]| std::str::from_utf8(&key[prefix.len()..]).ok()?.parse().ok();
        Ok(page.entries.iter().filter_map(|entry| number(&entry.key)).collect())
    }
}

/// The operations that claim what a new state of a Service has, and release what only the old one had.
pub(crate) fn ops(new: Option<&Value>, old: Option<&Value>) -> Vec<Op> {
    let (new, old) = (new.map(keys).unwrap_or_default(), old.map(keys).unwrap_or_default());
    let claimed = new.difference(&old).map(|key| Op::put(key.clone(), Bytes::new(), Expect::Absent));
    let released = old.difference(&new).map(|key| Op::delete(key.clone(), Expect::Anything));
    claimed.chain(released).collect()
}

/// The keys of all that a Service has allocated.
fn keys(service: &Value) -> BTreeSet<String> {
    let spec = &service["spec"];
    let address = spec["clusterIP"].as_str().filter(|address| !matches!(*address, "" | "None"));
    let address = address.filter(|_| spec["type"] != "ExternalName");
    let address = address.map(|address| format!("{ADDRESS_PREFIX}{address}"));
    let ports = node_ports::of(spec).map(|port| format!("{PORT_PREFIX}{port}"));
    address.into_iter().chain(ports).collect()
}
