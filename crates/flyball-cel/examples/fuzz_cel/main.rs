//! Throws random and damaged expressions at the engine, and reports what panics or takes too long.
//! `cargo run --release -p flyball-cel --example fuzz_cel -- SECONDS [SEED] [TARGET]`; the seed of a failure is printed.

mod input;
mod targets;

use input::Input;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The longest that one input may take, in processor time.
const MAX_TIME: Duration = Duration::from_secs(2);
/// The most memory that the process may use, in mebibytes.
const MAX_MEMORY: u64 = 1024;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(60);
    let first: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let only = arguments.next().unwrap_or_default();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut inputs, mut failures) = (first, 0_u64, 0_u64);
    while Instant::now() < end {
        for (name, target) in targets::ALL.iter().filter(|(name, _)| name.contains(&*only)) {
            inputs += 1;
            failures += u64::from(is_failure(name, seed, || target(&mut Input::new(seed))));
        }
        seed += 1;
        if memory().is_some_and(|mebibytes| mebibytes > MAX_MEMORY) {
            println!("more than {MAX_MEMORY} MiB are in use after seed {seed}");
            failures += 1;
            break;
        }
    }
    println!(
        "{inputs} inputs, seeds {first} to {seed}, {failures} failures, {} MiB",
        memory().unwrap_or(0)
    );
    ExitCode::from(u8::from(failures > 0))
}

fn is_failure(target: &str, seed: u64, run: impl FnOnce()) -> bool {
    let started = processor_time();
    let ended = panic::catch_unwind(AssertUnwindSafe(run));
    let took = processor_time().saturating_sub(started);
    if ended.is_err() {
        println!("{target} panicked with seed {seed}");
    } else if took > MAX_TIME {
        println!("{target} took {took:?} with seed {seed}");
    }
    ended.is_err() || took > MAX_TIME
}

/// How long this thread has run, where the system tells.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The most memory that the process has had, in mebibytes, where the system tells.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").trim().parse().ok()?;
    Some(kibibytes / 1024)
}
