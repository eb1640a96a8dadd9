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
