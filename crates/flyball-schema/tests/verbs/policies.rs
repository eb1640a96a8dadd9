//! Type checking of admission policies.

use crate::{check_all, same, text};
use flyball_schema::kinds;
use flyball_schema::policy::{CheckedType, type_check};
use serde_json::json;

#[test]
fn validations_are_checked_against_kinds() {
    check_all("type_check.yaml", |case| {
        let (api_version, kind) = (text(case, "apiVersion"), text(case, "kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let node = kinds::builtin().type_of(api_version, kind).expect("a built-in kind");
        let policy = json!({"spec": {"validations": [{"expression": case["expression"]}]}});
        let warnings = type_check(&policy, &[CheckedType { group, version, kind, node }], None);
        let warning = warnings.first().map_or("", |(_, warning)| warning);
        let head = format!("{group}/{version}, Kind={kind}: ");
        same(&json!(warning.trim_start_matches(&head).trim_end_matches('\n')), &case["warning"])
            .map_err(|why| format!("{}: {why}", case["expression"]))
    });
}
