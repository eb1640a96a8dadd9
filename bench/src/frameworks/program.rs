//! Builds the peers: Rust's with cargo beside this program, Go's and Python's into the user's cache, once a version.

use super::Framework;
use crate::server::start::profile;
use conformance::reference::cache_directory;
use sha2::{Digest, Sha256};
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A framework, and how its program is run; or why it cannot be.
pub struct Program {
    pub framework: Framework,
    pub command: Result<Vec<PathBuf>, String>,
}

/// What Go builds.
const GO: [(&str, &str); 4] = [
    ("go.mod", include_str!("../../peers/controller-runtime/go.mod")),
    ("go.sum", include_str!("../../peers/controller-runtime/go.sum")),
    ("main.go", include_str!("../../peers/controller-runtime/main.go")),
    ("widget.go", include_str!("../../peers/controller-runtime/widget.go")),
];

/// What Python runs.
const PYTHON: [(&str, &str); 2] = [
    ("requirements.txt", include_str!("../../peers/kopf/requirements.txt")),
    ("main.py", include_str!("../../peers/kopf/main.py")),
];

impl Program {
    /// Builds what is not built yet.
    pub fn prepare(framework: Framework) -> Program {
        eprintln!("bench: preparing {}", framework.name());
        let command = match framework {
            Framework::Flyball => cargo("peer-flyball"),
            Framework::KubeRuntime => cargo("peer-kube-runtime"),
            Framework::ControllerRuntime => go("controller-runtime", &GO),
            Framework::Kopf => cache().and_then(|cache| python(&cache)),
        };
        let command = command.inspect_err(|error| eprintln!("bench: {} is skipped: {error}", framework.name()));
        Program { framework, command }
    }
}

fn cache() -> Result<PathBuf, String> {
    cache_directory("peers").map_err(|error| error.to_string())
}

/// A program of this package, built beside this one.
pub(crate) fn cargo(name: &str) -> Result<Vec<PathBuf>, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--package", "bench", "--bin", name]).args(profile());
    run(&mut command)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(vec![program.with_file_name(name)])
}

/// A Go program, built once for what its files say.
pub(crate) fn go(name: &str, files: &[(&str, &str)]) -> Result<Vec<PathBuf>, String> {
    let directory = cache()?.join(format!("{name}-{}", key(files)));
    let program = directory.join("peer");
    if program.exists() {
        return Ok(vec![program]);
    }
    require("go", &["version"], "install Go 1.26 or newer")?;
    write(&directory, files)?;
    let mut command = Command::new("go");
    command.current_dir(&directory).env("GOWORK", "off");
    run(command.args(["build", "-trimpath", "-o", "unfinished", "."]))?;
    fs::rename(directory.join("unfinished"), &program).map_err(|error| error.to_string())?;
    Ok(vec![program])
}

fn python(cache: &Path) -> Result<Vec<PathBuf>, String> {
    let directory = cache.join(format!("kopf-{}", key(&PYTHON)));
    let (interpreter, ready) = (directory.join("venv/bin/python"), directory.join("ready"));
    if !ready.exists() {
        require("python3", &["-m", "venv", "--help"], "install Python 3.10 or newer with its venv module")?;
        write(&directory, &PYTHON)?;
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory.join("venv")))?;
        let mut install = Command::new(&interpreter);
        install.current_dir(&directory);
        run(install.args(["-m", "pip", "install", "--quiet", "-r", "requirements.txt"]))?;
        fs::write(ready, "").map_err(|error| error.to_string())?;
    }
    Ok(vec![interpreter, directory.join("main.py")])
}

/// Names what the files say, so that a changed one is built anew.
fn key(files: &[(&str, &str)]) -> String {
    let mut hash = Sha256::new();
    for (name, text) in files {
        hash.update(format!("{name} {}\n{text}", text.len()));
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(directory: &Path, files: &[(&str, &str)]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("write {}: {error}", directory.display());
    fs::create_dir_all(directory).map_err(failed)?;
    files
        .iter()
        .try_for_each(|(name, text)| fs::write(directory.join(name), text))
        .map_err(failed)
}

fn require(program: &str, arguments: &[&str], otherwise: &str) -> Result<(), String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!("no {program} on the PATH that can be used: {otherwise}")),
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let words = |command: &Command| -> String {
        let words: Vec<OsString> =
            std::iter::once(command.get_program()).chain(command.get_args()).map(Into::into).collect();
        words.join(" ".as_ref()).to_string_lossy().into_owned()
    };
    let output = command.output().map_err(|error| format!("`{}`: {error}", words(command)))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = errors
        .lines()
        .find(|line| line.starts_with("error"))
        .or(errors.trim().lines().next_back());
    Err(format!("`{}` failed: {}", words(command), said.unwrap_or("it said nothing")))
}

/// What a program prints, given these arguments.
pub(crate) fn output(program: &[PathBuf], arguments: &[&Path]) -> Result<String, String> {
    let (first, rest) = program.split_first().ok_or("no program")?;
    let output = Command::new(first)
        .args(rest)
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_the_way_out() {
        let error = require("no-such-python", &[], "install it").unwrap_err();
        assert_eq!(error, "no no-such-python on the PATH that can be used: install it");
    }

    #[test]
    fn a_failed_build_shows_its_command_and_last_words() {
        let error = run(Command::new("sh").args(["-c", "echo no such module >&2; exit 1"])).unwrap_err();
        assert!(error.ends_with("failed: no such module"), "{error}");
    }

    #[test]
    fn a_changed_source_is_another_key() {
        assert_ne!(key(&[("main.go", "a")]), key(&[("main.go", "b")]));
    }
}
