//! The program of the operator: its own flag, and what it prints.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cache::{Flags, directory::Absent, operator, program};
use flyball::Manifests;

/// F2: a flag of the author's, with its help.
#[test]
fn the_flag_of_the_author_is_read_and_in_the_help() {
    let settings = program().parse(["cache", "--zone", "b"]).unwrap();
    assert_eq!(settings.flags.zone, "b");
    assert_eq!(program().parse(["cache"]).unwrap().flags.zone, "a");
    let help = program().parse(["cache", "run", "--help"]).unwrap_err().to_string();
    assert!(help.contains("--zone <ZONE>") && help.contains("The zone that caches run in"), "{help}");
}

#[test]
fn the_rights_follow_from_the_declarations() {
    let operator = operator(Absent, &Flags { zone: "a".into() });
    let rbac = serde_json::to_value(Manifests::of(&operator).rbac()).unwrap().to_string();
    for resource in [
        "deployments",
        "services",
        "poddisruptionbudgets",
        "cronjobs",
        "servicemonitors",
        "secrets",
    ] {
        assert!(rbac.contains(&format!("\"{resource}\"")), "{resource}: {rbac}");
    }
}
