//! Configurations of admission webhooks: defaults and validation.

use super::admission_rule;
use super::rules::{maybe_one_of, selector, surely_one_of};
use super::spot::{Found, Spot};
use super::{fill, items, within};
use crate::client_config;
use crate::names;
use crate::policy::Compiler;
use crate::violation::Violation;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Sets the defaults of a ValidatingWebhookConfiguration.
// pkg/apis/admissionregistration/v1/defaults.go
pub fn default_validating(configuration: &mut Value) {
    for webhook in items(configuration, "webhooks") {
        fill(webhook, "failurePolicy", "Fail");
        fill(webhook, "matchPolicy", "Equivalent");
        fill(webhook, "namespaceSelector", json!({}));
        fill(webhook, "objectSelector", json!({}));
        fill(webhook, "timeoutSeconds", 10);
        items(webhook, "rules").for_each(|rule| fill(rule, "scope", "*"));
        if let Some(service) = within(webhook, "clientConfig").and_then(|config| within(config, "service")) {
            fill(service, "port", 443);
        }
    }
}

/// Sets the defaults of a MutatingWebhookConfiguration.
pub fn default_mutating(configuration: &mut Value) {
    default_validating(configuration);
    items(configuration, "webhooks").for_each(|webhook| fill(webhook, "reinvocationPolicy", "Never"));
}

/// Validates a ValidatingWebhookConfiguration.
// pkg/apis/admissionregistration/validation/validation.go
pub fn validate_validating(configuration: &Value, live: Option<&Value>) -> Vec<Violation> {
    validate(configuration, live, |_, _| {})
}

/// Validates a MutatingWebhookConfiguration.
pub fn validate_mutating(configuration: &Value, live: Option<&Value>) -> Vec<Violation> {
    validate(configuration, live, |webhook, found| {
        maybe_one_of(&webhook.field("reinvocationPolicy"), &["IfNeeded", "Never"], found);
    })
}

fn validate(configuration: &Value, live: Option<&Value>, also: fn(&Spot<'_>, &mut Found)) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    let root = Spot::root(configuration);
    for webhook in root.field("webhooks").items() {
        validate_name(&webhook.field("name"), &mut found);
        webhook.field("rules").items().for_each(|rule| admission_rule::rule(&rule, &mut found));
        maybe_one_of(&webhook.field("failurePolicy"), &["Fail", "Ignore"], &mut found);
        maybe_one_of(&webhook.field("matchPolicy"), &["Equivalent", "Exact"], &mut found);
        side_effects(&webhook.field("sideEffects"), &mut found);
        let timeout = webhook.field("timeoutSeconds");
        if timeout.is_set() && !(1..=30).contains(&timeout.int()) {
            timeout.invalid(&mut found, "the timeout value must be between 1 and 30 seconds");
        }
        for field in ["namespaceSelector", "objectSelector"] {
            let field = webhook.field(field);
            if field.is_set() {
                selector(&field, &mut found);
            }
        }
        also(&webhook, &mut found);
        let config = webhook.field("clientConfig");
        found.extend(client_config::validate(config.value, &config.path()));
        // Conditions that are stored already stay valid, also if CEL has become stricter since.
        if !live.is_some_and(|live| has_conditions(live, webhook.field("matchConditions").value)) {
            let compiler = Compiler::new().with_authorizer();
            admission_rule::match_conditions(&webhook.field("matchConditions"), &compiler, &mut found);
        }
        review_versions(&webhook.field("admissionReviewVersions"), &mut found);
        let name = webhook.field("name");
        if !name.text().is_empty() && !names.insert(name.text().to_owned()) {
            name.duplicate(&mut found, name.text());
        }
    }
    found
}

fn has_conditions(live: &Value, conditions: &Value) -> bool {
    let mut webhooks = live["webhooks"].as_array().into_iter().flatten();
    webhooks.any(|webhook| webhook["matchConditions"] == *conditions)
}

// apimachinery/pkg/util/validation/validation.go, IsFullyQualifiedName
fn validate_name(name: &Spot<'_>, found: &mut Found) {
    let text = name.text();
    let failures = names::dns1123_subdomain(text);
    if text.is_empty() {
        name.required(found, "");
    } else if !failures.is_empty() {
        name.invalid(found, &failures.join(","));
    } else if text.split('.').count() < 3 {
        name.invalid(found, "should be a domain with at least three segments separated by dots");
    }
}

fn side_effects(side_effects: &Spot<'_>, found: &mut Found) {
    match side_effects.is_set() {
        true => surely_one_of(side_effects, &["None", "NoneOnDryRun"], found),
        false => side_effects.required(found, "must specify one of None, NoneOnDryRun"),
    }
}

fn review_versions(versions: &Spot<'_>, found: &mut Found) {
    if versions.len() == 0 {
        versions.required(found, "must specify one of v1, v1beta1");
        return;
    }
    let mut seen = HashSet::new();
    for version in versions.items() {
        if !seen.insert(version.text().to_owned()) {
            version.invalid(found, "duplicate version");
            continue;
        }
        for failure in names::dns1035_label(version.text()) {
            version.invalid(found, &failure);
        }
    }
    if !seen.contains("v1") && !seen.contains("v1beta1") {
        versions.invalid(found, "must include at least one of v1, v1beta1");
    }
}
