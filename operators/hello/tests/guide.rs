//! Holds the guide's first chapter to this program: its Rust is this crate's, its commands are run, its settings are read.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeMap, process::Command};

const GUIDE: &str = include_str!("../../../docs/guide/01-hello.md");
const SOURCES: [&str; 2] = [include_str!("../src/main.rs"), include_str!("../src/tests.rs")];

/// The fenced blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("\n```{language}\n");
    let begun = GUIDE.split(fence.as_str()).skip(1);
    begun.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// What the program says to these arguments.
fn say(arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hello"));
    let output = command.args(arguments.split(' ')).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn the_rust_of_the_guide_is_this_program_and_its_test() {
    let snippets = blocks("rust");
    assert_eq!(snippets.len(), 4);
    for snippet in snippets {
        assert!(
            SOURCES.iter().any(|source| source.contains(snippet)),
            "not in operators/hello:\n{snippet}"
        );
    }
}

#[test]
fn the_guide_names_every_dependency() {
    let manifest = include_str!("../Cargo.toml").split("dependencies]").skip(1).flat_map(str::lines);
    let names = manifest.filter_map(|line| Some(line.split_once(" = ")?.0));
    let named = blocks("toml").concat();
    for name in names {
        assert!(named.contains(&format!("\n{name} = ")), "{name}");
    }
}

/// The packages that a build of this crate compiles, each with its features.
fn packages(edges: &str) -> BTreeMap<String, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "tree",
        "--offline",
        "--package",
        "hello",
        "--prefix",
        "none",
        "--format",
        "{p}|{f}",
        "--edges",
        edges,
    ]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let pairs = lines.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('|'));
    pairs.map(|(package, features)| (package.into(), features.into())).collect()
}

#[test]
fn a_test_and_a_program_share_one_build_of_the_dependencies() {
    let (program, test) = (packages("normal,build"), packages("normal,build,dev"));
    assert!(program.len() > 100, "{program:?}");
    for (package, features) in program {
        assert_eq!(test.get(&package), Some(&features), "{package}");
    }
}

/// The version that a manifest asks for, by whichever way it is written.
fn version<'a>(manifest: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = manifest.split_once(&format!("\n{name} = "))?;
    let line = rest.lines().next()?;
    let written = line.split_once("version = ").map_or(line, |(_, rest)| rest);
    written.strip_prefix('"')?.split('"').next()
}

#[test]
fn the_guide_asks_for_the_versions_that_this_workspace_has() {
    let (workspace, guide) = (include_str!("../../../Cargo.toml"), blocks("toml").concat());
    let names = ["k8s-openapi", "kube", "schemars", "serde", "serde_json", "tokio"];
    for name in names {
        assert!(version(&guide, name).is_some(), "{name}");
        assert_eq!(version(&guide, name), version(workspace, name), "{name}");
    }
}

#[test]
fn what_the_guide_shows_of_the_commands_is_what_they_say() {
    let mut run = 0;
    for block in blocks("console") {
        let (command, shown) = block.split_once('\n').unwrap();
        let Some(arguments) = command.strip_prefix("$ greeter ") else {
            continue;
        };
        let said = say(arguments);
        let mut rest = said.as_str();
        for part in shown.split("…\n") {
            let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{command}: no\n{part}\nin\n{rest}"));
            rest = after;
        }
        run += 1;
    }
    assert_eq!(run, 4);
}

#[test]
fn the_settings_of_the_guide_are_accepted() {
    let settings = blocks("yaml");
    let config = flyball::Config::from_yaml(settings[0]).unwrap();
    assert_eq!((settings.len(), config.namespaces.len()), (1, 2));
}

#[test]
fn wrong_arguments_end_with_exit_code_2() {
    for arguments in [&["walk"][..], &["--metrics-port", "x"], &["manifests"]] {
        let status = Command::new(env!("CARGO_BIN_EXE_hello")).args(arguments).output().unwrap().status;
        assert_eq!(status.code(), Some(2), "{arguments:?}");
    }
}
