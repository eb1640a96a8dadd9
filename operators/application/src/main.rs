//! The Application operator as a program, with its HTTP face.

use k8s_openapi::api::rbac::v1::PolicyRule;

#[tokio::main]
async fn main() -> flyball::Result<()> {
    let operator = application::operator().task("http", application::face::run);
    let applications = rule("cloudnative.elide.dev", "applications", &["create", "update", "delete"]);
    let events = rule("", "events", &["list"]);
    flyball::run(operator.permission(applications).permission(events)).await
}

/// What the face asks for beyond what the controller does.
fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        ..PolicyRule::default()
    }
}
