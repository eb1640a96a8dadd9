//! How objects are converted between versions: not at all, or by a webhook.

use super::{items, text};
use crate::client_config;
use crate::names::dns1035_label;
use crate::violation::Violation;
use serde_json::Value;
use std::collections::HashSet;

const PATH: &str = "spec.conversion";

pub(super) fn check(conversion: &Value) -> Vec<Violation> {
    let strategy = text(conversion, "strategy");
    match strategy {
        _ if conversion.is_null() => Vec::new(),
        "Webhook" => webhook(&conversion["webhook"]),
        _ => {
            let mut found = Vec::new();
            found.extend(match strategy {
                "None" => None,
                "" => Some(Violation::required(format!("{PATH}.strategy"), "")),
                other => Some(Violation::not_supported(format!("{PATH}.strategy"), other, &["None", "Webhook"])),
            });
            let detail = "should not be set when strategy is not set to Webhook";
            let webhook = &conversion["webhook"];
            if !webhook["clientConfig"].is_null() {
                found.push(Violation::forbidden(format!("{PATH}.webhookClientConfig"), detail));
            }
            if !items(webhook, "conversionReviewVersions").is_empty() {
                found.push(Violation::forbidden(format!("{PATH}.conversionReviewVersions"), detail));
            }
            found
        }
    }
}

fn webhook(webhook: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let config = &webhook["clientConfig"];
    let path = format!("{PATH}.webhookClientConfig");
    if config.is_null() {
        found.push(Violation::required(path, "required when strategy is set to Webhook"));
    } else {
        found.extend(client_config::validate(config, &path));
    }
    found.extend(review_versions(webhook));
    found
}

fn review_versions(webhook: &Value) -> Vec<Violation> {
    let path = format!("{PATH}.conversionReviewVersions");
    let versions: Vec<_> = items(webhook, "conversionReviewVersions").iter().filter_map(Value::as_str).collect();
    if versions.is_empty() {
        return vec![Violation::required(path, "")];
    }
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if !seen.insert(version) {
            found.push(Violation::invalid(path, *version, "duplicate version"));
            continue;
        }
        found.extend(dns1035_label(version).iter().map(|detail| Violation::invalid(&path, *version, detail)));
    }
    if !versions.contains(&"v1") && !versions.contains(&"v1beta1") {
        found.push(Violation::invalid(path, versions, "must include at least one of v1, v1beta1"));
    }
    found
}
