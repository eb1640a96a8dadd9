//! The Secrets that a pod refers to, and whether its service account permits them.

use serde_json::Value;
use std::collections::BTreeSet;

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Whether the pods of an account may refer only to the Secrets that the account lists.
pub(super) fn are_enforced(account: &Value) -> bool {
    let value = account["metadata"]["annotations"][ENFORCE].as_str();
    // strconv.ParseBool
    value.is_some_and(|value| ["1", "t", "T", "true", "TRUE", "True"].contains(&value))
}

/// Why a pod is refused because its account does not list a Secret.
// limitSecretReferences
pub(super) fn unreferenced(account: &Value, spec: &Value) -> Option<String> {
    let account_name = account["metadata"]["name"].as_str().unwrap_or_default();
    let mountable = names(&account["secrets"]);
    let refuse = |what: String, secret: &str| {
        let because = format!("because service account {account_name} does not reference that secret");
        (!mountable.contains(secret)).then(|| format!("{what}secret.secretName=\"{secret}\" is not allowed {because}"))
    };
    let mut volumes = items(&spec["volumes"]).filter_map(|volume| volume["secret"].get("secretName"));
    let in_volumes = volumes.find_map(|secret| refuse("volume with ".into(), secret.as_str().unwrap_or_default()));
    let in_containers = || {
        let kinds = [("initContainers", "init container"), ("containers", "container")];
        kinds.into_iter().find_map(|(list, kind)| {
            items(&spec[list]).find_map(|container| {
                let container_name = container["name"].as_str().unwrap_or_default();
                references(container).find_map(|(how, secret)| {
                    refuse(format!("{kind} {container_name} with {how} referencing "), secret)
                })
            })
        })
    };
    in_volumes
        .or_else(in_containers)
        .or_else(|| unreferenced_pull_secret(account, account_name, spec))
}

fn unreferenced_pull_secret(account: &Value, account_name: &str, spec: &Value) -> Option<String> {
    let allowed = names(&account["imagePullSecrets"]);
    let mut named = items(&spec["imagePullSecrets"]).map(|secret| secret["name"].as_str().unwrap_or_default());
    let (index, name) = named.by_ref().enumerate().find(|(_, name)| !allowed.contains(name))?;
    let because = format!("because service account {account_name} does not reference that imagePullSecret");
    Some(format!("imagePullSecrets[{index}].name=\"{name}\" is not allowed {because}"))
}

/// Whether a pod refers to any Secret.
// pkg/api/pod/util.go, VisitPodSecretNames
pub(super) fn has_any(spec: &Value) -> bool {
    const REFERENCES: [&str; 8] = [
        "cephfs",
        "cinder",
        "flexVolume",
        "rbd",
        "scaleIO",
        "iscsi",
        "storageos",
        "csi",
    ];
    let is_named = |value: &Value| value.as_str().is_some_and(|name| !name.is_empty());
    let in_volume = |volume: &Value| {
        let direct = REFERENCES.iter().any(|source| {
            let field = if *source == "csi" {
                "nodePublishSecretRef"
            } else {
                "secretRef"
            };
            is_named(&volume[source][field]["name"])
        });
        let projected = items(&volume["projected"]["sources"]).any(|source| is_named(&source["secret"]["name"]));
        direct || projected || ["azureFile", "secret"].iter().any(|source| is_named(&volume[source]["secretName"]))
    };
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    items(&spec["imagePullSecrets"]).any(|secret| is_named(&secret["name"]))
        || lists
            .iter()
            .any(|list| items(&spec[list]).any(|container| references(container).next().is_some()))
        || items(&spec["volumes"]).any(in_volume)
}

/// The Secrets that a container takes variables from, and how.
fn references(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let one = items(&container["env"]).filter_map(|variable| {
        let secret = variable["valueFrom"]["secretKeyRef"].as_object()?;
        let name = secret.get("name").and_then(Value::as_str).unwrap_or_default();
        Some((format!("envVar {}", variable["name"].as_str().unwrap_or_default()), name))
    });
    let all = items(&container["envFrom"]).filter_map(|source| {
        let secret = source["secretRef"].as_object()?;
        Some(("envFrom".to_owned(), secret.get("name").and_then(Value::as_str).unwrap_or_default()))
    });
    one.chain(all)
}

fn names(references: &Value) -> BTreeSet<&str> {
    items(references).filter_map(|reference| reference["name"].as_str()).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
