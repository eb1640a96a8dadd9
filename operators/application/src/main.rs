//! The Application operator as a program, with its HTTP API.

use k8s_openapi::api::rbac::v1::PolicyRule;

#[tokio::main]
async fn main() -> flyball::Result<()> {
    let operator = application::operator().task("http", application::http_api::run);
    let applications = rule("cloudnative.elide.dev", "applications", &["create", "update", "delete"]);
    let events = rule("", "events", &["list"]);
    flyball::run(operator.permission(applications).permission(events)).await
}

/// A right that the HTTP API needs beyond those of the controller.
fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        ..PolicyRule::default()
    }
}
