//! The `check` command: formatting, lints, the repository's rules and the documentation, one after the other.

use std::process::{Command, ExitCode};

/// What is run, and under which name it is reported.
const STEPS: [(&str, &[&str]); 5] = [
    ("format", &["fmt", "--all", "--check"]),
    (
        "lints",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "--deny",
            "warnings",
        ],
    ),
    (
        "features",
        &[
            "check",
            "--package",
            "flyball",
            "--no-default-features",
            "--features",
            "k8s-openapi/v1_36",
            "--quiet",
        ],
    ),
    ("rules", &["test", "--package", "tidy", "--quiet"]),
    ("documentation", &["doc", "--workspace", "--no-deps", "--quiet"]),
];

fn main() -> ExitCode {
    if let Some(argument) = std::env::args().nth(1) {
        eprintln!("cargo run -p tidy: format, lints, rules and documentation; it takes no arguments, got `{argument}`");
        return ExitCode::from(2);
    }
    let mut failed = Vec::new();
    for (name, arguments) in STEPS {
        eprintln!("check: {name}: cargo {}", arguments.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(arguments)
            .env("RUSTDOCFLAGS", "--deny warnings")
            .status();
        if !status.is_ok_and(|status| status.success()) {
            failed.push(name);
        }
    }
    match failed.as_slice() {
        [] => ExitCode::SUCCESS,
        failed => {
            eprintln!("check: failed: {}", failed.join(", "));
            ExitCode::FAILURE
        }
    }
}
