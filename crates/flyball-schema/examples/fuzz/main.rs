//! Throws random and damaged input at every entry point of this crate, and reports what panics or takes too long.
//! `cargo run --release -p flyball-schema --example fuzz -- SECONDS [SEED] [TARGET]`; the seed of a failure is printed.

mod builtin;
mod input;
mod large;
mod targets;

use input::Input;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long one input may take, in processor time: a second for each mebibyte of it, begun or whole.
const SLOW: Duration = Duration::from_secs(1);
const SLOW_IF_LARGE: Duration = Duration::from_secs(3);
/// How many inputs a target gets at most before the next has its turn.
const TURN: u64 = 50;
/// The most memory that all of it may take, in mebibytes.
const MOST_MEMORY: u64 = 1024;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let only = arguments.next().unwrap_or_default();
    let corpus = input::corpus();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut turn, mut inputs, mut failures) = (seed, 0_u64, 0);
    while Instant::now() < end {
        for (name, target, count) in targets::ALL.iter().filter(|(name, ..)| name.contains(&*only)) {
            for number in 0..*count {
                let seed = turn * TURN + number;
                inputs += 1;
                failures += u64::from(is_failure(name, seed, || target(&mut Input::new(seed, &corpus))));
            }
        }
        turn += 1;
        if memory().is_some_and(|mebibytes| mebibytes > MOST_MEMORY) {
            println!("more than {MOST_MEMORY} MiB are in use after turn {turn}");
            failures += 1;
            break;
        }
    }
    println!(
        "{inputs} inputs, turns {seed} to {turn}, {failures} failures, {} MiB",
        memory().unwrap_or(0)
    );
    ExitCode::from(u8::from(failures > 0))
}

fn is_failure(target: &str, seed: u64, run: impl FnOnce()) -> bool {
    let most = if target == "large" { SLOW_IF_LARGE } else { SLOW };
    let started = worked();
    let ended = panic::catch_unwind(AssertUnwindSafe(run));
    let took = worked().saturating_sub(started);
    if ended.is_err() {
        println!("{target} panicked with seed {seed}");
    } else if took > most {
        println!("{target} took {took:?} with seed {seed}");
    }
    ended.is_err() || took > most
}

/// How long this thread has worked, where the system tells: waiting for a processor is nobody's fault.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// How much memory this process has, in mebibytes, where the system tells.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kibibytes| kibibytes / 1024)
}
