//! From a definition to the kinds that it brings, one for each served version.

use crate::crd::{Definition, conditions};
use crate::registry::{CrdVersion, Kind, Scale, object};
use flyball_schema::crd::{self, Structural};
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

/// The kinds of a definition. Those of which nothing changed stay the same, so that their watches go on.
pub(crate) fn kinds(definition: &Value, revision: u64, old: Option<&Definition>) -> Vec<Arc<Kind>> {
    let is_served = conditions::is_true(definition, "NamesAccepted") || conditions::is_true(definition, "Established");
    if !is_served {
        return Vec::new();
    }
    let terminating = conditions::is_true(definition, "Terminating");
    let same = |old: &&Definition| {
        old.object["spec"] == definition["spec"]
            && old.object["status"]["acceptedNames"] == definition["status"]["acceptedNames"]
            && !old.kinds.is_empty()
    };
    if let Some(old) = old.filter(same) {
        old.kinds
            .iter()
            .filter_map(|kind| kind.custom.as_ref())
            .for_each(|custom| custom.set_terminating(terminating));
        return old.kinds.clone();
    }
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = |version: &Value| (text(&version["name"]), structural(version));
    let types = Arc::new(versions.iter().map(named).collect());
    let kind = |version: &Value| {
        let custom = CrdVersion {
            since: revision,
            versions: Arc::clone(&types),
            ..custom(definition, version)
        };
        custom.set_terminating(terminating);
        Arc::new(Kind::custom(resource(definition, version), custom))
    };
    versions.iter().filter(|version| version["served"] == true).map(kind).collect()
}

fn structural(version: &Value) -> Structural {
    let schema = &version["schema"]["openAPIV3Schema"];
    let status = match version["subresources"]["status"].is_object() {
        true => crd::Status::Subresource,
        false => crd::Status::Plain,
    };
    // What was accepted by an older server may not be by this one.
    crd::read(schema, "", status).unwrap_or_else(|_| Structural::anything())
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
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().find(|version| version["storage"] == true);
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    CrdVersion {
        name: object::name(definition).to_owned(),
        uid: object::text(definition, "uid").to_owned(),
        storage_version: stored.map(|version| text(&version["name"])).unwrap_or_default(),
        columns: columns.map(CustomColumn::read).collect(),
        selectable_fields: fields.map(|field| text(&field["jsonPath"])).collect(),
        scale: scale(&version["subresources"]["scale"]),
        status: version["subresources"]["status"].is_object(),
        deprecation_warning: deprecation(definition, version),
        open_api_v3_schema: version["schema"]["openAPIV3Schema"].clone(),
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

/// What clients of a deprecated version are told.
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
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let better = versions
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(&other["name"]))
        .filter(|other| priority(other) > priority(&own))
        .max_by_key(|other| priority(other));
    let warning = format!("{group}/{own} {kind} is deprecated");
    Some(match better {
        Some(better) => format!("{warning}; use {group}/{better} {kind}"),
        None => warning,
    })
}

/// Where a version stands: stable before beta before alpha, then by number.
// apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings
fn priority(version: &str) -> (u8, u64, u64) {
    let number = |text: &str| text.parse::<u64>().ok();
    let Some(rest) = version.strip_prefix('v') else {
        return (0, 0, 0);
    };
    for (word, rank) in [("alpha", 1), ("beta", 2)] {
        if let Some((major, minor)) = rest.split_once(word)
            && let (Some(major), Some(minor)) = (number(major), number(if minor.is_empty() { "0" } else { minor }))
        {
            return (rank, major, minor);
        }
    }
    number(rest).map_or((0, 0, 0), |major| (3, major, 0))
}
