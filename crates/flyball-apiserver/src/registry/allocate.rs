//! The addresses and ports of services: each is a key of its own, claimed and given back in the commit that writes the
//! service, so that no two services ever have the same.

use crate::registry::{Kind, object};
use crate::request::options::causes;
use crate::status::{Result, Status};
use bytes::Bytes;
use flyball_schema::violation::Violation;
use flyball_store::{Expect, Op};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use uuid::Uuid;

/// The address of the service that stands for the API server itself: the first of 10.96.0.0/12.
pub(crate) const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
const ADDRESSES: RangeInclusive<u32> = 0x0a60_0002..=0x0a6f_fffe;
const PORTS: RangeInclusive<u16> = 30000..=32767;

/// Whether objects of a kind are assigned anything.
pub(crate) fn concerns(kind: &Kind) -> bool {
    kind.is("", "services")
}

/// Gives a service the addresses and ports that it needs and lacks.
// pkg/registry/core/service/storage/alloc.go
pub(crate) fn assign(kind: &Kind, object: &mut Value) -> Result<()> {
    if !concerns(kind) || object["spec"]["type"] == "ExternalName" {
        return Ok(());
    }
    let resource = &kind.resource;
    let name = object::name(object).to_owned();
    let invalid = |violation| Status::invalid(&resource.group, &resource.kind, &name, causes(vec![violation]));
    let spec = &mut object["spec"];
    match spec["clusterIP"].as_str().unwrap_or_default() {
        "None" => {}
        "" => {
            let address = Ipv4Addr::from(random(*ADDRESSES.start(), *ADDRESSES.end())).to_string();
            spec["clusterIPs"] = json!([address]);
            spec["clusterIP"] = address.into();
        }
        given => {
            let address = given.parse::<Ipv4Addr>().map(u32::from).unwrap_or(0);
            if !ADDRESSES.contains(&address) && address != u32::from(FIRST_ADDRESS) {
                let why =
                    format!("failed to allocate IP {given}: the provided network does not match the current range");
                return Err(invalid(Violation::invalid("spec.clusterIPs", spec["clusterIPs"].clone(), &why)));
            }
        }
    }
    if needs_ports(spec) {
        assign_ports(spec).map_err(invalid)?;
    }
    if spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local" {
        let mut used: BTreeSet<u64> = ports(spec).collect();
        if spec["healthCheckNodePort"].as_u64().unwrap_or(0) == 0 {
            spec["healthCheckNodePort"] = unused(&mut used).into();
        }
    }
    Ok(())
}

/// A port that the service does not use yet.
fn unused(used: &mut BTreeSet<u64>) -> u64 {
    loop {
        let number = u64::from(random(u32::from(*PORTS.start()), u32::from(*PORTS.end())));
        if used.insert(number) {
            return number;
        }
    }
}

fn needs_ports(spec: &Value) -> bool {
    match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

fn assign_ports(spec: &mut Value) -> Result<(), Violation> {
    let mut used: BTreeSet<u64> = ports(spec).collect();
    for (index, port) in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
        match port["nodePort"].as_u64() {
            None | Some(0) => port["nodePort"] = unused(&mut used).into(),
            Some(number) if u16::try_from(number).is_ok_and(|number| PORTS.contains(&number)) => {}
            Some(number) => {
                let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                return Err(Violation::invalid(format!("spec.ports[{index}].nodePort"), number, why));
            }
        }
    }
    Ok(())
}

fn ports(spec: &Value) -> impl Iterator<Item = u64> {
    let ports = spec["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| port["nodePort"].as_u64());
    ports.chain(spec["healthCheckNodePort"].as_u64()).filter(|port| *port > 0)
}

fn random(from: u32, to: u32) -> u32 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    from + (high >> 32) as u32 % (to - from + 1)
}

/// What a change of a service claims and gives back.
pub(crate) fn ops(kind: &Kind, new: Option<&Value>, old: Option<&Value>) -> Vec<Op> {
    if !concerns(kind) {
        return Vec::new();
    }
    let (new, old) = (new.map(keys).unwrap_or_default(), old.map(keys).unwrap_or_default());
    let claimed = new.difference(&old).map(|key| Op::put(key.clone(), Bytes::new(), Expect::Absent));
    let freed = old.difference(&new).map(|key| Op::delete(key.clone(), Expect::Anything));
    claimed.chain(freed).collect()
}

fn keys(service: &Value) -> BTreeSet<String> {
    let spec = &service["spec"];
    let address = spec["clusterIP"].as_str().filter(|address| !matches!(*address, "" | "None"));
    let address = address.map(|address| format!("flyball/addresses/{address}"));
    address
        .into_iter()
        .chain(ports(spec).map(|port| format!("flyball/ports/{port}")))
        .collect()
}

/// Why a service cannot have what it asks for by number; none if it did not, and may be given something else.
pub(crate) fn refusal(kind: &Kind, taken: &[u8], asked: &Value) -> Option<Status> {
    let taken = String::from_utf8_lossy(taken);
    if !keys(asked).contains(&*taken) {
        return None;
    }
    let value = taken.rsplit('/').next().unwrap_or_default();
    let spec = &asked["spec"];
    let violation = match taken.starts_with("flyball/addresses/") {
        true => {
            let why = format!("failed to allocate IP {value}: provided IP is already allocated");
            Violation::invalid("spec.clusterIPs", json!([value]), &why)
        }
        false => {
            let index = ports(spec).position(|port| port.to_string() == value).unwrap_or(0);
            let path = format!("spec.ports[{index}].nodePort");
            Violation::invalid(path, value.parse::<u64>().unwrap_or(0), "provided port is already allocated")
        }
    };
    Some(Status::invalid("", &kind.resource.kind, object::name(asked), causes(vec![violation])))
}
