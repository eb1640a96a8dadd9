//! The second chapter of the guide as a program: a kind with rules, and the tests of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use flyball::Operator;
use flyball_test::{Cluster, check_rules};
use kube::api::PostParams;
use kube::{Api, CustomResource, CustomResourceExt, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::json;

const GUIDE: &str = include_str!("../../../docs/guide/02-rules.md");

/// A disk that grows up to a limit.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[kube(group = "example.dev", version = "v1", kind = "Disk", namespaced)]
#[x_kube(validation = ("self.size <= self.limit", "size exceeds limit"))]
#[x_kube(validation = ("self.size >= oldSelf.size", "a disk does not shrink"))]
struct DiskSpec {
    size: i64,
    limit: i64,
}

#[test]
fn the_rules_of_a_disk_are_valid() {
    check_rules(&Disk::crd()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_disk_stays_within_its_limit() {
    let cluster = Cluster::with(Operator::new("disks").crd(Disk::crd())).await;
    let disks: Api<Disk> = Api::default_namespaced(cluster.client());

    let large = Disk::new("large", DiskSpec { size: 20, limit: 10 });
    let refused = disks.create(&PostParams::default(), &large).await.unwrap_err();
    assert!(refused.to_string().contains("spec: Invalid value: size exceeds limit"), "{refused}");

    let mut disk = cluster.create(Disk::new("small", DiskSpec { size: 5, limit: 10 })).await;
    disk.spec.size = 4;
    let refused = disks.replace("small", &PostParams::default(), &disk).await.unwrap_err();
    assert!(refused.to_string().contains("a disk does not shrink"), "{refused}");
}

/// The definition of disks with other rules.
fn disks_with(rules: serde_json::Value) -> serde_json::Value {
    let mut definition = json!(Disk::crd());
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        rules;
    definition
}

#[test]
fn an_invalid_rule_is_reported_with_its_place() {
    let definition = disks_with(json!([{"rule": "self.sise <= self.limit"}, {"rule": "self.size"}]));
    let refused = check_rules(&definition).unwrap_err().to_string();
    let expected = [
        "an API server refuses this definition",
        "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: ",
        "ERROR: <input>:1:5: undefined field 'sise'",
        "x-kubernetes-validations[1].rule: Invalid value: ",
        "cel expression must evaluate to a bool",
    ];
    for part in expected {
        assert!(refused.contains(part), "no {part:?} in\n{refused}");
    }
}

#[test]
fn the_guide_shows_what_an_invalid_rule_is_reported_as() {
    let refused = check_rules(&disks_with(json!([{"rule": "self.sise <= self.limit"}]))).unwrap_err();
    let shown = GUIDE.split("\n```text\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    assert_eq!(refused.to_string(), shown);
}

#[test]
fn a_rule_that_may_cost_too_much_is_reported() {
    let mut definition = disks_with(json!([{"rule": "self.names.all(a, self.names.all(b, a == b))"}]));
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["names"] = json!({"type": "array", "items": {"type": "string"}});
    let refused = check_rules(&definition).unwrap_err().to_string();
    assert!(
        refused.contains("estimated rule cost exceeds budget by factor of more than 100x"),
        "{refused}"
    );
}

#[test]
fn the_rust_of_the_guide_is_this_program() {
    let snippets = GUIDE.split("\n```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for snippet in snippets {
        assert!(include_str!("rules.rs").contains(snippet), "not in this file:\n{snippet}");
        count += 1;
    }
    assert_eq!(count, 3);
}
