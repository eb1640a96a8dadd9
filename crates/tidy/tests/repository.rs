//! Holds this repository to its rules.

use cargo_metadata::MetadataCommand;
use tidy::{Complaint, clock, edges, length, names, opening, prose, source};

fn none(complaints: Vec<Complaint>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn files_and_functions_are_short() {
    none(source::rust(&source::root()).iter().flat_map(length::complaints).collect());
}

#[test]
fn names_say_what_things_are() {
    none(source::rust(&source::root()).iter().flat_map(names::complaints).collect());
}

#[test]
fn every_file_says_its_job() {
    none(source::rust(&source::root()).iter().flat_map(opening::complaints).collect());
}

#[test]
fn time_is_tokios() {
    none(source::rust(&source::root()).iter().flat_map(clock::complaints).collect());
}

#[test]
fn no_mark_is_orphaned_and_no_path_belongs_to_one_machine() {
    none(source::written(&source::root()).iter().flat_map(prose::complaints).collect());
}

#[test]
fn dependencies_point_one_way() {
    let metadata = MetadataCommand::new().manifest_path(source::root().join("Cargo.toml")).exec();
    none(edges::complaints(&metadata.expect("cargo metadata answers")));
}

#[test]
fn every_crate_inherits_from_the_workspace() {
    let metadata = MetadataCommand::new().manifest_path(source::root().join("Cargo.toml")).no_deps().exec();
    let metadata = metadata.expect("cargo metadata answers");
    let inherited = [
        "version.workspace",
        "edition.workspace",
        "rust-version.workspace",
        "license.workspace",
        "[lints]",
    ];
    let missing = metadata.packages.iter().flat_map(|package| {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("a manifest is readable");
        let missing = inherited.iter().filter(move |line| !manifest.contains(**line));
        missing.map(|line| format!("{}: {line} is missing", package.manifest_path))
    });
    none(missing.collect());
}

#[test]
fn the_readme_shows_hello_and_its_test_to_the_letter() {
    let read = |path: &str| std::fs::read_to_string(source::root().join(path)).expect("the file is there");
    let readme = read("README.md");
    let (program, _) = read("operators/hello/src/main.rs")
        .split_once("\n#[cfg(test)]")
        .map(owned)
        .expect("a test module");
    let test = read("operators/hello/src/tests.rs");
    let test = &test[test.find("#[tokio::test").expect("a test")..];
    assert!(readme.contains(&program), "README.md differs from operators/hello/src/main.rs");
    assert!(readme.contains(test), "README.md differs from operators/hello/src/tests.rs");
}

#[test]
fn the_readme_and_the_architecture_are_short() {
    let lines = |path: &str| {
        std::fs::read_to_string(source::root().join(path))
            .expect("the file is there")
            .lines()
            .count()
    };
    assert!(lines("README.md") <= 150, "{} lines", lines("README.md"));
    assert!(lines("ARCHITECTURE.md") <= 300, "{} lines", lines("ARCHITECTURE.md"));
}

#[test]
fn the_architecture_names_files_that_exist() {
    let root = source::root();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the file is there");
    let crates = [
        "",
        "crates/",
        "crates/flyball/src/",
        "crates/flyball-apiserver/src/",
        "crates/flyball-store/src/",
    ];
    let crates = crates.into_iter().chain(["crates/flyball-schema/src/", "crates/flyball-cluster/src/"]);
    let folders: Vec<_> = crates.map(|folder| root.join(folder)).collect();
    let named = text
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|word| word.trim_start_matches("store:").trim_start_matches("schema:"));
    let missing = named.filter(|word| word.ends_with(".rs") && !word.contains([' ', '*']) && *word != "clock.rs");
    none(
        missing
            .filter(|word| !folders.iter().any(|folder| folder.join(word).exists()))
            .map(str::to_owned)
            .collect(),
    );
}

#[test]
fn every_promise_names_tests_that_exist() {
    let promises = std::fs::read_to_string(source::root().join("docs/promises.md")).expect("the file is there");
    let sources = source::rust(&source::root());
    let tests = promises
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| line.split(" | ").nth(1));
    let named: Vec<&str> = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 100, "{} tests are named", named.len());
    let exists = |name: &str| sources.iter().any(|file| file.text.contains(&format!("fn {name}()")));
    none(
        named
            .iter()
            .filter(|name| !exists(name))
            .map(|name| format!("docs/promises.md: no test {name}"))
            .collect(),
    );
}

fn owned((left, right): (&str, &str)) -> (String, String) {
    (left.to_owned(), right.to_owned())
}
