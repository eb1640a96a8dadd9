//! The status of admission policies.

use flyball_test::Cluster;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

fn policy(name: &str, validations: Value) -> ValidatingAdmissionPolicy {
    let rule =
        json!({"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]});
    let constraints = json!({"resourceRules": [rule]});
    let policy =
        json!({"metadata": {"name": name}, "spec": {"matchConstraints": constraints, "validations": validations}});
    serde_json::from_value(policy).expect("a policy")
}

fn is_observed(policy: &ValidatingAdmissionPolicy) -> bool {
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
    observed == policy.metadata.generation
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_type_checked_against_the_kinds_that_it_matches() {
    let cluster = Cluster::start().await;
    let validations = json!([
        {"expression": "object.spec.replicas <= 5"},
        {"expression": "object.replicas > 1", "messageExpression": "string(object.spec.replica)"},
    ]);
    cluster.create(policy("p", validations)).await;

    let checked = cluster.until("p", is_observed).await;

    let status = checked.status.expect("a status");
    let warnings = status.type_checking.and_then(|checked| checked.expression_warnings).expect("warnings");
    let fields: Vec<&str> = warnings.iter().map(|warning| warning.field_ref.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.validations[1].expression",
            "spec.validations[1].messageExpression"
        ]
    );
    let expected = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n";
    assert_eq!(warnings[0].warning, expected);
}
