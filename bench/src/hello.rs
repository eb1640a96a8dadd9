//! How long the README's test takes: the program that `cargo test -p hello` builds, from its start to its end.

use crate::{
    figure::{Figure, median},
    report::{Aim, Row},
};
use serde_json::Value;
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const RUNS: usize = 11;

/// The whole test process, as a user's machine runs it: unoptimized.
pub fn rows() -> Vec<Row> {
    let program = build();
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        let run = Command::new(&program).stdout(Stdio::null()).status().expect("the test starts");
        assert!(run.success(), "hello's test passes");
        start.elapsed()
    });
    vec![Row {
        what: "hello's test, the whole process".into(),
        ours: Figure::Time(median(times.collect())),
        peer: None,
        aim: Aim::Within(Figure::Time(Duration::from_millis(100))),
    }]
}

/// Builds the test and finds it in what cargo says.
fn build() -> String {
    let arguments = [
        "test",
        "--no-run",
        "--quiet",
        "--package",
        "hello",
        "--message-format",
        "json",
    ];
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "hello's test builds");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| message["executable"].as_str().map(str::to_owned));
    programs.next_back().expect("cargo names the test program")
}
