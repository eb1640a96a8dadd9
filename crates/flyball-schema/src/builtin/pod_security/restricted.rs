//! The checks of the level `restricted`.
// policy/check_*.go, LevelRestricted

use super::baseline::{offence, profiles};
use super::{Offence, containers, containers_where, named_containers, plural, quoted, setters, text};
use serde_json::Value;
use std::collections::BTreeSet;

const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const BAD_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn privilege_escalation(pod: &Value) -> Option<Offence> {
    let bad = containers_where(pod, |one| one["securityContext"]["allowPrivilegeEscalation"] != false);
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", named_containers(&bad));
    (!bad.is_empty()).then(|| offence("allowPrivilegeEscalation != false", detail)).flatten()
}

pub(super) fn capabilities(pod: &Value) -> Option<Offence> {
    let list = |container: &Value, field: &str| -> Vec<String> {
        let list = container["securityContext"]["capabilities"][field].as_array().into_iter().flatten();
        list.map(|one| text(one).to_owned()).collect()
    };
    let added = |container: &Value| -> Vec<String> {
        list(container, "add").into_iter().filter(|one| one != "NET_BIND_SERVICE").collect()
    };
    let mut details = Vec::new();
    let keeping = containers_where(pod, |container| !list(container, "drop").iter().any(|one| one == "ALL"));
    if !keeping.is_empty() {
        let who = named_containers(&keeping);
        details.push(format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    let adding = containers_where(pod, |container| !added(container).is_empty());
    if !adding.is_empty() {
        let values: BTreeSet<String> = containers(pod).flat_map(added).collect();
        let (who, values) = (named_containers(&adding), quoted(values));
        details.push(format!("{who} must not include {values} in securityContext.capabilities.add"));
    }
    (!details.is_empty())
        .then(|| offence("unrestricted capabilities", details.join("; ")))
        .flatten()
}

pub(super) fn volumes(pod: &Value) -> Option<Offence> {
    let has = |volume: &Value, source: &str| volume.get(source).is_some_and(|source| !source.is_null());
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let bad: Vec<&Value> = volumes.filter(|one| !VOLUMES.iter().any(|source| has(one, source))).collect();
    if bad.is_empty() {
        return None;
    }
    let kind = |volume: &&Value| BAD_VOLUMES.into_iter().find(|source| has(volume, source)).unwrap_or("unknown");
    let kinds: BTreeSet<&str> = bad.iter().map(kind).collect();
    let (noun, verb) = (plural("volume", "volumes", bad.len()), plural("uses", "use", bad.len()));
    let names = quoted(bad.iter().map(|volume| text(&volume["name"])));
    let what = plural("restricted volume type", "restricted volume types", kinds.len());
    offence("restricted volume types", format!("{noun} {names} {verb} {what} {}", quoted(kinds)))
}

pub(super) fn run_as_non_root(pod: &Value) -> Option<Offence> {
    let says = |owner: &Value| owner["securityContext"]["runAsNonRoot"].as_bool();
    let of_pod = says(&pod["spec"]);
    let who = setters(of_pod == Some(false), &containers_where(pod, |one| says(one) == Some(false)));
    let reason = "runAsNonRoot != true";
    if !who.is_empty() {
        return offence(reason, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = containers_where(pod, |one| says(one).is_none() && of_pod != Some(true));
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", named_containers(&silent));
    (!silent.is_empty()).then(|| offence(reason, detail)).flatten()
}

pub(super) fn run_as_user(pod: &Value) -> Option<Offence> {
    let is_bad = |owner: &Value| owner["securityContext"]["runAsUser"] == 0;
    let who = setters(is_bad(&pod["spec"]), &containers_where(pod, is_bad));
    (!who.is_empty())
        .then(|| offence("runAsUser=0", format!("{who} must not set runAsUser=0")))
        .flatten()
}

pub(super) fn seccomp(pod: &Value) -> Option<Offence> {
    let (pod_sets, bad, values) = profiles(pod, "seccompProfile", &PROFILES);
    let who = setters(pod_sets, &bad);
    if !who.is_empty() {
        let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
        return offence("seccompProfile", detail);
    }
    let says = |owner: &Value| owner["securityContext"]["seccompProfile"].is_object();
    let silent = containers_where(pod, |one| !says(one) && !says(&pod["spec"]));
    let what = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    let detail = format!("pod or {} {what}", named_containers(&silent));
    (!silent.is_empty()).then(|| offence("seccompProfile", detail)).flatten()
}
