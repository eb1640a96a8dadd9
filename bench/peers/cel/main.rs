//! What Flyball does with the same rules as the Go program beside it, in an allocator that counts.
//! Prints `NAME NANOSECONDS ALLOCATIONS BYTES`, an operation each.

use flyball_cel::{Bindings, Env, Program, Type, Value};
use serde_json::Value as Json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How long each operation is repeated; Go's `testing.Benchmark` takes as long.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// Kubernetes' limit for one rule.
const LIMIT: u64 = 1_000_000;

fn main() {
    let directory = std::env::args().nth(1).expect("the directory of the input");
    let directory = Path::new(&directory);
    let input = read(directory, "rules.json");
    let object = read(directory, "object.json");
    let env = Env::kubernetes().variable("self", Type::Dyn);
    let rules: Vec<&str> = input["rules"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();

    measure("compile", || {
        black_box(env.compile(rules[3]).expect("a valid rule"));
    });

    let programs: Vec<Program> = rules.iter().map(|rule| env.compile(rule).expect("a valid rule")).collect();
    measure("rules", || {
        let bindings = Bindings::new().bind("self", Value::json(&object));
        programs.iter().for_each(|program| check(program, &bindings));
    });

    let items: Json = (0..1000).collect();
    let program = env.compile(input["comprehension"].as_str().unwrap_or_default()).expect("a valid rule");
    measure("comprehension", || check(&program, &Bindings::new().bind("self", Value::json(&items))));
}

fn check<'a>(program: &'a Program, bindings: &Bindings<'a>) {
    let value = program.evaluate_within(bindings, LIMIT).result;
    assert!(matches!(value, Ok(Value::Bool(true))), "{value:?}");
}

fn read(directory: &Path, name: &str) -> Json {
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
