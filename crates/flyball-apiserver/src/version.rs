//! `/version`: the version of Kubernetes whose API is served, and Flyball's own.

use flyball_schema::kinds;
use serde_json::{Value, json};

/// The version of Kubernetes that the table of kinds was generated from, with Flyball's own as build metadata.
pub fn git_version() -> String {
    format!("{}+flyball.{}", kinds::builtin().version, env!("CARGO_PKG_VERSION"))
}

/// The same without its patch: `1.36`.
pub fn major_minor() -> String {
    let (major, minor) = numbers();
    format!("{major}.{minor}")
}

fn numbers() -> (u32, u32) {
    let mut numbers = kinds::builtin().version.trim_start_matches('v').split('.').map(str::parse);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or_default();
    (number(), number())
}

/// The document at `/version`.
pub fn version() -> Value {
    let (major, minor) = numbers();
    let older = minor.saturating_sub(1).to_string();
    let (major, minor) = (major.to_string(), minor.to_string());
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": older,
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform()
    })
}

/// The platform under Go's names.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        system => system,
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        architecture => architecture,
    };
    format!("{system}/{architecture}")
}
