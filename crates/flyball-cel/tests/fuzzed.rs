//! The first inputs of each fuzz target; `examples/fuzz_cel` goes on from there.

#[path = "../examples/fuzz_cel/input.rs"]
mod input;
#[path = "../examples/fuzz_cel/targets.rs"]
mod targets;

use input::Input;

/// How many inputs each target gets.
const INPUTS: u64 = 40;

#[test]
fn no_target_panics() {
    for (_, target) in targets::ALL {
        (0..INPUTS).for_each(|seed| target(&mut Input::new(seed)));
    }
}
