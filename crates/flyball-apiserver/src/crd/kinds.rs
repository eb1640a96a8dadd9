//! The kinds that a definition brings, one for each served version.

use crate::crd::{CrdSchemas, Definition, conditions};
use crate::registry::conversion::webhook::ConversionWebhook;
use crate::registry::{CrdVersion, Kind, Scale, StoredDefinition, object, version_priority};
use crate::webhook::WebhookClient;
use flyball_schema::print::CustomColumn;
use flyball_schema::resource::{Resource, Subresource};
use serde_json::Value;
use std::sync::Arc;

const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// The kinds that a definition brings. Their schemas take effect at its revision: commits of objects check that the
/// definition has not changed, so that no object is stored later by an older schema.
pub(crate) fn served(definition: &Definition, webhooks: &WebhookClient) -> Vec<Arc<Kind>> {
    let object = &definition.object;
    if !conditions::is_true(object, "NamesAccepted") && !conditions::is_true(object, "Established") {
        return Vec::new();
    }
    let schemas = Arc::new(CrdSchemas::new(definition.entry.value.clone()));
    let terminating = Arc::new(conditions::is_true(object, "Terminating").into());
    let stored = Arc::new(StoredDefinition {
        key: definition.entry.key.clone(),
        revision: definition.entry.revision.into(),
    });
    let conversion = ConversionWebhook::read(webhooks, object).map(Arc::new);
    let kind = |version: &Value| {
        let custom = CrdVersion {
            conversion: conversion.clone(),
            since: definition.entry.revision,
            definition: Some(Arc::clone(&stored)),
            schemas: Arc::clone(&schemas),
            terminating: Arc::clone(&terminating),
            ..custom(object, version)
        };
        Arc::new(Kind::custom(resource(object, version), custom))
    };
    let versions = versions(object).iter().filter(|version| version["served"] == true);
    versions.map(kind).collect()
}

/// The kind of a definition's storage version, for its stored objects: it may be one that is not served.
pub(crate) fn stored(definition: &Definition) -> Option<Arc<Kind>> {
    let object = &definition.object;
    let version = versions(object).iter().find(|version| version["storage"] == true)?;
    let schemas = Arc::new(CrdSchemas::new(definition.entry.value.clone()));
    let custom = CrdVersion { since: u64::MAX, schemas, ..custom(object, version) };
    Some(Arc::new(Kind::custom(resource(object, version), custom)))
}

fn versions(definition: &Value) -> &[Value] {
    definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<Box<str>> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(Box::from).collect()
}

fn resource(definition: &Value, version: &Value) -> Resource {
    let (spec, names) = (&definition["spec"], &definition["status"]["acceptedNames"]);
    let group: Box<str> = text(&spec["group"]).into();
    let name: Box<str> = text(&version["name"]).into();
    let kind: Box<str> = text(&names["kind"]).into();
    let verbs = |verbs: &[&str]| verbs.iter().map(|verb| Box::from(*verb)).collect();
    let mut subresources = Vec::new();
    if version["subresources"]["status"].is_object() {
        subresources.push(Subresource {
            name: "status".into(),
            group: group.clone(),
            version: name.clone(),
            kind: kind.clone(),
            verbs: verbs(&["get", "patch", "update"]),
            schema: None,
        });
    }
    if version["subresources"]["scale"].is_object() {
        subresources.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: verbs(&["get", "patch", "update"]),
            schema: None,
        });
    }
    Resource {
        group,
        version: name,
        kind,
        list_kind: text(&names["listKind"]).into(),
        plural: text(&names["plural"]).into(),
        singular: text(&names["singular"]).into(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: verbs(&VERBS),
        subresources,
        storage_version_hash: None,
        schema: None,
    }
}

fn custom(definition: &Value, version: &Value) -> CrdVersion {
    let stored = versions(definition).iter().find(|version| version["storage"] == true);
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    CrdVersion {
        name: object::name(definition).to_owned(),
        uid: object::text(definition, "uid").to_owned(),
        generation: object::generation(definition),
        storage_version: stored.map(|version| text(&version["name"])).unwrap_or_default(),
        columns: columns.map(CustomColumn::read).collect(),
        selectable_fields: fields.map(|field| text(&field["jsonPath"])).collect(),
        scale: scale(&version["subresources"]["scale"]),
        status: version["subresources"]["status"].is_object(),
        deprecation_warning: deprecation(definition, version),
        ..CrdVersion::default()
    }
}

fn scale(scale: &Value) -> Option<Scale> {
    scale.is_object().then(|| Scale {
        spec_replicas_path: text(&scale["specReplicasPath"]),
        status_replicas_path: text(&scale["statusReplicasPath"]),
        label_selector_path: scale["labelSelectorPath"].as_str().map(str::to_owned),
    })
}

/// The Warning header for clients of a deprecated version.
// apiextensions-apiserver/pkg/apiserver/customresource_handler.go, defaultDeprecationWarning
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned());
    }
    let (group, kind) = (text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["kind"]));
    let own = text(&version["name"]);
    let better = versions(definition)
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(&other["name"]))
        .filter(|other| version_priority(other) > version_priority(&own))
        .max_by_key(|other| version_priority(other));
    let warning = format!("{group}/{own} {kind} is deprecated");
    Some(match better {
        Some(better) => format!("{warning}; use {group}/{better} {kind}"),
        None => warning,
    })
}
