//! What Flyball does to the same input as the Go program beside it, in an allocator that counts.
//! Prints `NAME NANOSECONDS ALLOCATIONS BYTES`, an operation each.

use flyball_schema::crd::{self, Status};
use flyball_schema::managed_fields::{self, Request};
use flyball_schema::{default, kinds, prune, validate};
use serde_json::Value;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How long each operation is repeated; Go's `testing.Benchmark` takes as long.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

fn main() {
    let directory = std::env::args().nth(1).expect("the directory of the input");
    resource(Path::new(&directory));
    apply(Path::new(&directory));
}

fn read(directory: &Path, name: &str) -> Value {
    let bytes = std::fs::read(directory.join(name)).expect("the input can be read");
    serde_json::from_slice(&bytes).expect("the input is JSON")
}

fn measure(name: &str, mut operation: impl FnMut()) {
    operation();
    let region = Region::new(ALLOCATOR);
    operation();
    let counted = region.change();
    let (start, mut times) = (Instant::now(), 0_u128);
    while start.elapsed() < LONG_ENOUGH {
        (0..100).for_each(|_| operation());
        times += 100;
    }
    let allocations = counted.allocations + counted.reallocations;
    println!("{name} {} {allocations} {}", start.elapsed().as_nanos() / times, counted.bytes_allocated);
}

/// Prune, default and validate a custom resource, as a server does to what it is sent.
fn resource(directory: &Path) {
    let structural = crd::read(&read(directory, "schema.json"), "schema", Status::Plain).expect("a structural schema");
    let node = structural.node();
    let object = read(directory, "resource.json");
    measure("resource", || {
        let mut object = object.clone();
        black_box(prune::prune(node, &mut object));
        default::default(node, &mut object);
        let violations = validate::validate(node, &object);
        assert!(violations.is_empty(), "{violations:?}");
    });
}

/// One of three managers applies another image to a Deployment.
fn apply(directory: &Path) {
    let applies = read(directory, "applies.json");
    let mut live = None;
    for (config, manager) in [("deploy-1", "deploy"), ("mesh", "mesh"), ("scaler", "scaler")] {
        live = managed_fields::apply(&request(live.as_ref(), manager), &applies[config], false).expect("no conflicts");
    }
    measure("apply", || {
        let applied = managed_fields::apply(&request(live.as_ref(), "deploy"), &applies["deploy-2"], false);
        assert!(applied.expect("no conflicts").is_some());
    });
}

fn request<'a>(live: Option<&'a Value>, manager: &'a str) -> Request<'a> {
    Request {
        node: kinds::builtin().type_of("apps/v1", "Deployment").expect("Deployments are in the table"),
        live,
        manager,
        api_version: "apps/v1",
        kind: "Deployment",
        subresource: None,
        reset: &["status"],
        versions: &[],
        now: "2026-01-01T00:00:00Z",
    }
}
