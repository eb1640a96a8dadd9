//! Defaults of the configurations of admission webhooks and policies.

use super::{at, fill, items, within};
use serde_json::{Value, json};

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

/// Sets the defaults of a ValidatingAdmissionPolicyBinding.
pub fn default_policy_binding(binding: &mut Value) {
    let Some(matched) = within(at(binding, "spec"), "matchResources") else {
        return;
    };
    fill(matched, "matchPolicy", "Equivalent");
    fill(matched, "namespaceSelector", json!({}));
    fill(matched, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        items(matched, rules).for_each(|rule| fill(rule, "scope", "*"));
    }
}
