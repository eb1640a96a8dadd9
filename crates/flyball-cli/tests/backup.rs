//! `flyball backup` and `flyball restore` as processes. The cluster that they use takes a second to start.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

fn flyball(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flyball"));
    command.args(words).current_dir(directory);
    command
}

fn run(directory: &Path, words: &[&str]) -> Output {
    flyball(directory, words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Starts a cluster in a directory, and waits until it says that it runs.
fn up(directory: &Path, data: &str) -> Child {
    let mut command = flyball(directory, &["up", "--data", data, "--port", "0"]);
    let mut child = command.env("PORT", "0").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("Ctrl-C")), "it did not start");
    child
}

fn stop(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_cluster_is_backed_up_while_it_runs_and_restored() {
    let place = tempfile::tempdir().unwrap();
    let running = up(place.path(), "one");
    let output = run(place.path(), &["backup", "file", "--data", "one"]);
    let said = text(&output.stdout);
    assert!(output.status.success() && said.starts_with("backed up "), "{output:?}");
    assert!(said.trim_end().ends_with(" MiB, verified)"), "{said}");

    let output = run(place.path(), &["restore", "file", "--data", "one"]);
    let expected = "flyball: the directory one/store is not empty: restore into one that is empty, or not there yet\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected.to_owned()));
    stop(running);

    let output = run(place.path(), &["restore", "file", "--data", "two"]);
    assert!(output.status.success(), "{output:?}");
    let restored = text(&output.stdout);
    assert_eq!(
        restored.lines().next().unwrap(),
        said.trim_end().replace("backed up", "restored").replace("to file", "into two")
    );
    assert!(restored.ends_with("Next: flyball up --data two\n"), "{restored}");
    stop(up(place.path(), "two"));
}

#[test]
fn a_cluster_that_does_not_run_is_backed_up_too() {
    let place = tempfile::tempdir().unwrap();
    stop(up(place.path(), "one"));
    let output = run(place.path(), &["backup", "file", "--data", "one"]);
    assert!(output.status.success(), "{output:?}");
    assert!(place.path().join("file").exists());
}

#[test]
fn invalid_backups_and_directories_are_refused() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("thesis"), "ten years").unwrap();
    for (words, expected) in [
        (
            ["backup", "file", "--data", "none"],
            "no cluster in none: set its directory with --data DIR, or its etcd with --etcd",
        ),
        (
            ["restore", "missing", "--data", "new"],
            "read the backup missing: No such file or directory (os error 2)",
        ),
        (
            ["restore", "thesis", "--data", "new"],
            "the backup thesis is damaged (it does not begin as a backup does): use another one",
        ),
    ] {
        let output = run(place.path(), &words);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), format!("flyball: {expected}\n")));
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn an_error_of_the_running_cluster_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let running = up(place.path(), "one");
    let output = run(place.path(), &["backup", "nowhere/file", "--data", "one"]);
    let error = text(&output.stderr);
    assert!(
        error.starts_with("flyball: the running cluster refused the backup: write the backup "),
        "{error}"
    );
    assert!(error.ends_with("No such file or directory (os error 2)\n"), "{error}");
    stop(running);
}
