//! Rules in CEL beside cel-go in Kubernetes' base environment: one compiled, ten evaluated on an object of 2 KiB, and a
//! comprehension over 1,000 items. Each side is a program of its own and says how long an operation takes and what it allocates.

use crate::{
    figure::Figure,
    frameworks::program::{cargo, go, output},
    report::{Aim, Row},
};
use std::{path::PathBuf, time::Duration};

/// What Go builds.
const GO: [(&str, &str); 3] = [
    ("go.mod", include_str!("../peers/cel/go.mod")),
    ("go.sum", include_str!("../peers/cel/go.sum")),
    ("main.go", include_str!("../peers/cel/main.go")),
];
/// How often each side is asked, in turns.
const ROUNDS: usize = 3;
const NAMES: [(&str, &str); 3] = [
    ("compile", "compile a rule"),
    ("rules", "ten rules on 2 KiB"),
    ("comprehension", "comprehension, 1,000 items"),
];

/// Time, allocations and bytes of each operation on both sides; nothing where Go is missing.
pub fn rows() -> Vec<Row> {
    let programs = go("cel", &GO).and_then(|peer| Ok((cargo("peer-cel")?, peer)));
    let (ours, peer) = match programs {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("bench: cel is skipped: {error}");
            return Vec::new();
        }
    };
    let (mut of_ours, mut of_peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_ours.extend(ask(&ours));
        of_peer.extend(ask(&peer));
    }
    NAMES.iter().flat_map(|(name, what)| compare(name, what, &of_ours, &of_peer)).collect()
}

type Measured = (String, [f64; 3]);

/// Lines of `NAME NANOSECONDS ALLOCATIONS BYTES`.
fn ask(program: &[PathBuf]) -> Vec<Measured> {
    let input = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/cel"));
    let text = output(program, &[&input]).expect("the program runs");
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("three numbers");
        (name, [number(), number(), number()])
    };
    text.lines().map(line).collect()
}

/// What a column is called, and how its numbers read.
type Unit = (&'static str, fn(f64) -> Figure);

const UNITS: [Unit; 3] = [
    ("", |nanoseconds| Figure::Time(Duration::from_nanos(nanoseconds as u64))),
    (": allocations", Figure::Count),
    (": bytes allocated", Figure::Bytes),
];

fn compare(name: &str, what: &str, ours: &[Measured], peer: &[Measured]) -> Vec<Row> {
    let middle = |measured: &[Measured], index: usize, figure: fn(f64) -> Figure| {
        let of_name = measured.iter().filter(|(its_name, _)| its_name == name);
        Figure::middle(of_name.map(|(_, numbers)| figure(numbers[index])).collect())
    };
    let row = |(index, (unit, figure)): (usize, &Unit)| Row {
        what: format!("{what}{unit}"),
        ours: middle(ours, index, *figure),
        peer: Some(("cel-go", middle(peer, index, *figure))),
        aim: Aim::Times(1.0),
    };
    UNITS.iter().enumerate().map(row).collect()
}
