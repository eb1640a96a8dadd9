//! ServiceAccount: a new pod gets a service account that exists, its token as a volume, and its image pull secrets.
// plugin/pkg/admission/serviceaccount/admission.go

mod secrets;

use crate::admission::Attributes;
use crate::admission::chain::Plugin;
use crate::kinds::core::POD;
use crate::registry::{object, strategy};
use crate::status::Result;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use std::time::Duration;

/// Marks a pod that stands for a static pod of a kubelet.
const MIRROR: &str = "kubernetes.io/config.mirror";
const TOKEN_VOLUME: &str = "kube-api-access-";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The lifetime of a mounted token: one hour, and seven seconds by which servers recognize it.
const TOKEN_SECONDS: i64 = 3607;
/// How often the account `default` is looked up: a controller creates it after the namespace.
const MAX_LOOKUPS: usize = 10;
const LOOKUP_INTERVAL: Duration = Duration::from_millis(150);

/// The plugin.
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&POD)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            if is_mirror(&attributes.object) {
                return check_mirror(attributes);
            }
            let name = match account_name(&attributes.object) {
                "" => "default",
                name => name,
            };
            let name = name.to_owned();
            let account = find(attributes, &name).await?;
            let spec = &mut attributes.object["spec"];
            spec["serviceAccountName"] = name.into();
            if mounts_token(&account, spec) {
                mount_token(spec);
            }
            let pull_secrets = account["imagePullSecrets"].as_array().filter(|secrets| !secrets.is_empty());
            if let (true, Some(secrets)) = (is_empty(&spec["imagePullSecrets"]), pull_secrets) {
                spec["imagePullSecrets"] = secrets.iter().map(|secret| json!({"name": secret["name"]})).collect();
            }
            check(attributes, &account)
        }
        .boxed()
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            if is_mirror(&attributes.object) {
                return check_mirror(attributes);
            }
            let name = account_name(&attributes.object).to_owned();
            if name.is_empty() {
                let (namespace, pod) = (attributes.namespace.unwrap_or_default(), object::name(&attributes.object));
                return Err(attributes.forbidden(format!("no service account specified for pod {namespace}/{pod}")));
            }
            let account = find(attributes, &name).await?;
            check(attributes, &account)
        }
        .boxed()
    }
}

fn account_name(pod: &Value) -> &str {
    pod["spec"]["serviceAccountName"].as_str().unwrap_or_default()
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

async fn find(attributes: &Attributes<'_>, name: &str) -> Result<Value> {
    let namespace = attributes.namespace.unwrap_or_default();
    let lookups = if name == "default" { MAX_LOOKUPS } else { 1 };
    for lookup in 0..lookups {
        if lookup > 0 {
            tokio::time::sleep(LOOKUP_INTERVAL).await;
        }
        if let Some(entry) = attributes.get(format!("core/serviceaccounts/{namespace}/{name}")).await? {
            return Ok(object::decode(&entry.value));
        }
    }
    let looked_up = format!("error looking up service account {namespace}/{name}");
    Err(attributes.forbidden(format!("{looked_up}: serviceaccount {name:?} not found")))
}

fn check(attributes: &Attributes<'_>, account: &Value) -> Result<()> {
    match secrets::unreferenced(account, &attributes.object["spec"]) {
        Some(why) if secrets::are_enforced(account) => Err(attributes.forbidden(why)),
        _ => Ok(()),
    }
}

/// Refuses a mirror pod that refers to API objects, which its kubelet cannot provide.
fn check_mirror(attributes: &Attributes<'_>) -> Result<()> {
    let spec = &attributes.object["spec"];
    let sources = |volume: &Value| volume["projected"]["sources"].as_array().cloned().unwrap_or_default();
    let mut sources = spec["volumes"].as_array().into_iter().flatten().flat_map(sources);
    let why = if !account_name(&attributes.object).is_empty() {
        "a mirror pod may not reference service accounts"
    } else if secrets::has_any(spec) {
        "a mirror pod may not reference secrets"
    } else if sources.any(|source| source.get("serviceAccountToken").is_some()) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(attributes.forbidden(why))
}

/// Whether the token is mounted: as the pod says, else as the account says.
fn mounts_token(account: &Value, spec: &Value) -> bool {
    let says = |value: &Value| value["automountServiceAccountToken"].as_bool();
    says(spec).or_else(|| says(account)).unwrap_or(true)
}

/// Mounts the token volume into each container that has nothing at its path, and adds the volume if one needs it.
fn mount_token(spec: &mut Value) {
    let name_of = |volume: &Value| volume["name"].as_str().unwrap_or_default().to_owned();
    let mut names = spec["volumes"].as_array().into_iter().flatten().map(name_of);
    let present = names.find(|name| name.starts_with(TOKEN_VOLUME));
    let name = present.clone().unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", strategy::random_suffix()));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|container| container.is_object()) {
            let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
            if !mounts.any(|mount| mount["mountPath"] == TOKEN_PATH) {
                push(container, "volumeMounts", mount.clone());
                is_needed = true;
            }
        }
    }
    if is_needed && present.is_none() {
        push(spec, "volumes", token_volume(name));
    }
}

fn push(owner: &mut Value, field: &str, item: Value) {
    match owner[field].as_array_mut() {
        Some(items) => items.push(item),
        None => owner[field] = json!([item]),
    }
}

// TokenVolumeSource
fn token_volume(name: String) -> Value {
    let field = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let sources = json!([
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
    ]);
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": sources}})
}
