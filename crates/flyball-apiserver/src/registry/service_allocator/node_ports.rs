//! Node ports of one Service: those it asks for, and any free ones for the rest.

use super::{FULL, Pool, random};
use crate::request::options::causes;
use crate::status::{Result, Status};
use flyball_schema::violation::Violation;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

const PORTS: Pool = Pool { first: 30000, size: 2768, reserved: 86 };
const TAKEN: &str = "provided port is already allocated";
const OUT_OF_RANGE: &str = "provided port is not in the valid range. The range of valid ports is 30000-32767";

/// The ports that are taken, by other Services or by this one.
pub(super) struct NodePorts {
    taken: HashSet<u32>,
    /// Ports that may be free: those to be given out first, and the reserved ones.
    candidates: Option<[Vec<u32>; 2]>,
}

/// The node ports that a Service has allocated.
pub(super) fn of(spec: &Value) -> impl Iterator<Item = u64> {
    let ports = numbers(spec).filter(|_| may_have_ports(spec));
    ports.chain(health_check(spec).filter(|_| needs_health_check(spec)))
}

fn numbers(spec: &Value) -> impl Iterator<Item = u64> {
    spec["ports"].as_array().into_iter().flatten().map(number).filter(|number| *number > 0)
}

fn number(port: &Value) -> u64 {
    port["nodePort"].as_u64().unwrap_or(0)
}

fn health_check(spec: &Value) -> Option<u64> {
    spec["healthCheckNodePort"].as_u64().filter(|number| *number > 0)
}

fn may_have_ports(spec: &Value) -> bool {
    matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

// alloc.go, shouldAllocateNodePorts
fn allocates_ports(spec: &Value) -> bool {
    match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

// pkg/api/service/util.go, NeedsHealthCheck
fn needs_health_check(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

impl NodePorts {
    /// Whether a Service has anything to allocate that its old state did not have.
    pub fn needed(spec: &Value, old: &Value) -> bool {
        let had: HashSet<u64> = of(old).collect();
        let lacks = |port: &Value| number(port) == 0;
        let lacks_any = allocates_ports(spec) && spec["ports"].as_array().into_iter().flatten().any(lacks);
        let lacks_check = needs_health_check(spec) && health_check(spec).is_none();
        lacks_any || lacks_check || of(spec).any(|number| !had.contains(&number))
    }

    /// The ports outside of which there are free ones.
    pub fn new(taken: HashSet<u32>) -> NodePorts {
        NodePorts { taken, candidates: None }
    }

    /// Fills in the ports that a Service lacks, and takes those that it names.
    pub fn allocate(mut self, spec: &mut Value, old: Option<&Value>, name: &str) -> Result<()> {
        if may_have_ports(spec) {
            let allocated = match old {
                None => self.create(spec),
                Some(old) => self.update(spec, old),
            };
            allocated.map_err(|failure| failure.status(name))?;
        }
        let had_check = old.is_some_and(needs_health_check);
        if needs_health_check(spec) && !had_check {
            self.allocate_health_check(spec)?;
        }
        Ok(())
    }

    // alloc.go, initNodePorts: ports of the same number but different protocols share a node port.
    fn create(&mut self, spec: &mut Value) -> Result<(), Failure> {
        let allocates = allocates_ports(spec);
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).map_or(&mut [][..], |ports| ports);
        let mut requested: HashMap<i64, u64> = HashMap::new();
        for port in ports.iter().filter(|port| number(port) > 0) {
            requested.entry(port["port"].as_i64().unwrap_or(0)).or_insert(number(port));
        }
        let mut allocated: HashMap<i64, u64> = HashMap::new();
        for (index, port) in ports.iter_mut().enumerate() {
            let (key, given) = (port["port"].as_i64().unwrap_or(0), number(port));
            if given == 0 && !allocates {
                continue;
            }
            let node_port = match (allocated.get(&key), requested.get(&key)) {
                (Some(shared), _) if given == 0 || given == *shared => *shared,
                (Some(_), _) => self.take(given, index)?,
                (None, Some(requested)) => self.take(*requested, index)?,
                (None, None) => self.next()?,
            };
            allocated.entry(key).or_insert(node_port);
            port["nodePort"] = node_port.into();
        }
        Ok(())
    }

    // alloc.go, updateNodePorts
    fn update(&mut self, spec: &mut Value, old: &Value) -> Result<(), Failure> {
        let allocates = allocates_ports(spec);
        let mut had: HashSet<u64> = numbers(old).filter(|_| may_have_ports(old)).collect();
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        for (index, port) in ports.enumerate() {
            match number(port) {
                0 if allocates => port["nodePort"] = self.next()?.into(),
                0 => {}
                given if had.contains(&given) => {}
                given => {
                    had.insert(self.take(given, index)?);
                }
            }
        }
        Ok(())
    }

    fn allocate_health_check(&mut self, spec: &mut Value) -> Result<()> {
        let allocated = match health_check(spec) {
            Some(given) => self.take(given, 0).map_err(|failure| {
                format!("failed to allocate requested HealthCheck NodePort {given}: {}", failure.why())
            }),
            None => self
                .next()
                .map_err(|failure| format!("failed to allocate a HealthCheck NodePort 0: {}", failure.why())),
        };
        spec["healthCheckNodePort"] = allocated.map_err(Status::internal)?.into();
        Ok(())
    }

    fn take(&mut self, number: u64, index: usize) -> Result<u64, Failure> {
        let is_in_range = (u64::from(PORTS.first)..u64::from(PORTS.first + PORTS.size)).contains(&number);
        let why = match u32::try_from(number) {
            Ok(number) if is_in_range && self.taken.insert(number) => return Ok(number.into()),
            Ok(_) if is_in_range => TAKEN,
            _ => OUT_OF_RANGE,
        };
        Err(Failure::Port { index, number, why })
    }

    fn next(&mut self) -> Result<u64, Failure> {
        for candidates in self.candidates.get_or_insert_with(|| PORTS.parts().map(Iterator::collect)) {
            while !candidates.is_empty() {
                let port = candidates.swap_remove(random() as usize % candidates.len());
                if self.taken.insert(port) {
                    return Ok(port.into());
                }
            }
        }
        Err(Failure::Full)
    }
}

/// Why a port is not allocated.
enum Failure {
    Full,
    Port {
        index: usize,
        number: u64,
        why: &'static str,
    },
}

impl Failure {
    fn why(&self) -> &'static str {
        match self {
            Failure::Full => FULL,
            Failure::Port { why, .. } => why,
        }
    }

    fn status(self, name: &str) -> Status {
        match self {
            Failure::Full => Status::internal(format!("failed to allocate a nodePort: {FULL}")),
            Failure::Port { index, number, why } => {
                let violation = Violation::invalid(format!("spec.ports[{index}].nodePort"), number, why);
                Status::invalid("", "Service", name, causes(vec![violation]))
            }
        }
    }
}
