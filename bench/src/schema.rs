//! What is done to JSON beside Go's own libraries: a custom resource pruned, defaulted and validated, and an apply.
//! Each side is a program of its own, given the same input, and says how long an operation takes and what it allocates.

use crate::{
    figure::Figure,
    frameworks::program::{cargo, go, output},
    report::{Aim, Row},
};
use std::{path::PathBuf, time::Duration};

/// What Go builds.
const GO: [(&str, &str); 3] = [
    ("go.mod", include_str!("../peers/schema/go.mod")),
    ("go.sum", include_str!("../peers/schema/go.sum")),
    ("main.go", include_str!("../peers/schema/main.go")),
];
/// How often each side is asked, in turns.
const ROUNDS: usize = 3;
const NAMES: [(&str, &str, &str); 2] = [
    ("resource", "prune, default, validate 2 KiB", "apiextensions-apiserver"),
    ("apply", "apply, three managers", "structured-merge-diff"),
];

/// Time, allocations and bytes of both operations on both sides; nothing where Go is missing.
pub fn rows() -> Vec<Row> {
    let programs = go("schema", &GO).and_then(|peer| Ok((cargo("peer-schema")?, peer)));
    let (ours, peer) = match programs {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("bench: schema is skipped: {error}");
            return Vec::new();
        }
    };
    let (mut of_ours, mut of_peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_ours.push(ask(&ours));
        of_peer.push(ask(&peer));
    }
    NAMES.iter().flat_map(|names| compare(names, &of_ours, &of_peer)).collect()
}

/// Lines of `NAME NANOSECONDS ALLOCATIONS BYTES`.
fn ask(program: &[PathBuf]) -> Vec<(String, [f64; 3])> {
    let input = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/schema"));
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

type Asked = [Vec<(String, [f64; 3])>];

fn compare((name, what, peer_name): &(&str, &str, &'static str), ours: &Asked, peer: &Asked) -> Vec<Row> {
    let units: [Unit; 3] = [
        ("", |nanoseconds| Figure::Time(Duration::from_nanos(nanoseconds as u64))),
        (": allocations", Figure::Count),
        (": bytes allocated", Figure::Bytes),
    ];
    let middle = |asked: &Asked, index: usize, figure: fn(f64) -> Figure| {
        let of_name = asked.iter().flatten().filter(|(its_name, _)| its_name == name);
        Figure::middle(of_name.map(|(_, numbers)| figure(numbers[index])).collect())
    };
    let row = |(index, (unit, figure)): (usize, &Unit)| Row {
        what: format!("{what}{unit}"),
        ours: middle(ours, index, *figure),
        peer: Some((peer_name, middle(peer, index, *figure))),
        aim: Aim::Times(1.0),
    };
    units.iter().enumerate().map(row).collect()
}
