//! The checks of the level `baseline`.
// policy/check_*.go, LevelBaseline

use super::{Offence, containers, containers_where, named_containers, plural, quoted, setters, text};
use serde_json::Value;
use std::collections::BTreeSet;

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// In the order in which they were permitted.
const SE_LINUX_TYPES: [&str; 4] = [
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
/// In the order in which they were permitted.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

pub(super) fn offence(reason: &'static str, detail: String) -> Option<Offence> {
    Some(Offence { reason, detail })
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The annotations of a pod that a check forbids, as `key="value"`.
fn annotations(pod: &Value, forbids: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let all = pod["metadata"]["annotations"].as_object().into_iter().flatten();
    let forbidden = all.filter(|(key, value)| forbids(key, text(value)));
    let mut shown: Vec<String> = forbidden.map(|(key, value)| format!("{key}={:?}", text(value))).collect();
    shown.sort();
    shown
}

/// A field of the security contexts of a pod and its containers: whether the pod's is bad, the containers with bad ones,
/// and the bad values.
pub(super) fn profiles(pod: &Value, field: &str, allowed: &[&str]) -> (bool, Vec<String>, BTreeSet<String>) {
    let kind = |owner: &Value| {
        let profile = owner["securityContext"].get(field).filter(|profile| profile.is_object())?;
        let kind = text(&profile["type"]);
        (!allowed.contains(&kind)).then(|| kind.to_owned())
    };
    let of_pod = kind(&pod["spec"]);
    let values = containers(pod).filter_map(kind).chain(of_pod.clone()).collect();
    (of_pod.is_some(), containers_where(pod, |container| kind(container).is_some()), values)
}

pub(super) fn app_armor(pod: &Value) -> Option<Offence> {
    let (pod_sets, bad, values) = profiles(pod, "appArmorProfile", &["RuntimeDefault", "Localhost"]);
    let is_forbidden = |key: &str, value: &str| {
        let is_allowed = value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
        key.starts_with(APP_ARMOR) && !is_allowed
    };
    let annotated = annotations(pod, is_forbidden);
    let mut who = setters(pod_sets, &bad);
    if !annotated.is_empty() {
        let word = plural("annotation", "annotations", annotated.len());
        who = if who.is_empty() {
            word.to_owned()
        } else {
            format!("{who} and {word}")
        };
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<String> = values.into_iter().chain(annotated).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    offence(reason, format!("{who} must not set AppArmor profile type to {}", quoted(values)))
}

pub(super) fn capabilities(pod: &Value) -> Option<Offence> {
    let added = |container: &Value| -> BTreeSet<String> {
        let added = strings(&container["securityContext"]["capabilities"]["add"]);
        added.filter(|one| !CAPABILITIES.contains(one)).map(str::to_owned).collect()
    };
    let bad = containers_where(pod, |container| !added(container).is_empty());
    if bad.is_empty() {
        return None;
    }
    let values: BTreeSet<String> = containers(pod).flat_map(added).collect();
    let (who, values) = (named_containers(&bad), quoted(values));
    let detail = format!("{who} must not include {values} in securityContext.capabilities.add");
    offence("non-default capabilities", detail)
}

pub(super) fn host_namespaces(pod: &Value) -> Option<Offence> {
    let used = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| pod["spec"][field] == true);
    let used: Vec<String> = used.map(|field| format!("{field}=true")).collect();
    (!used.is_empty()).then(|| offence("host namespaces", used.join(", "))).flatten()
}

pub(super) fn host_paths(pod: &Value) -> Option<Offence> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let bad = volumes
        .filter(|volume| volume["hostPath"].is_object())
        .map(|volume| text(&volume["name"]));
    let bad: Vec<&str> = bad.collect();
    let detail = format!("{} {}", plural("volume", "volumes", bad.len()), quoted(&bad));
    (!bad.is_empty()).then(|| offence("hostPath volumes", detail)).flatten()
}

pub(super) fn host_ports(pod: &Value) -> Option<Offence> {
    let ports = |container: &Value| -> BTreeSet<String> {
        let ports = container["ports"].as_array().into_iter().flatten();
        let ports = ports.map(|port| port["hostPort"].as_i64().unwrap_or(0)).filter(|port| *port != 0);
        ports.map(|port| port.to_string()).collect()
    };
    let bad = containers_where(pod, |container| !ports(container).is_empty());
    if bad.is_empty() {
        return None;
    }
    let values: Vec<String> = containers(pod).flat_map(ports).collect::<BTreeSet<_>>().into_iter().collect();
    let (who, verb) = (named_containers(&bad), plural("uses", "use", bad.len()));
    let noun = plural("hostPort", "hostPorts", values.len());
    offence("hostPort", format!("{who} {verb} {noun} {}", values.join(", ")))
}

pub(super) fn probe_hosts(pod: &Value) -> Option<Offence> {
    let hosts = |container: &Value| -> BTreeSet<String> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
        let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
        let handlers = probes.into_iter().chain(hooks);
        let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|action| &handler[action]["host"]));
        hosts.map(text).filter(|host| !host.is_empty()).map(str::to_owned).collect()
    };
    let bad: BTreeSet<String> = containers_where(pod, |container| !hosts(container).is_empty()).into_iter().collect();
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<String> = bad.into_iter().collect();
    let values: BTreeSet<String> = containers(pod).flat_map(hosts).collect();
    let (who, verb) = (named_containers(&bad), plural("uses", "use", bad.len()));
    let noun = plural("probe or lifecycle host", "probe or lifecycle hosts", values.len());
    offence("probe or lifecycle host", format!("{who} {verb} {noun} {}", quoted(values)))
}

pub(super) fn privileged(pod: &Value) -> Option<Offence> {
    let bad = containers_where(pod, |container| container["securityContext"]["privileged"] == true);
    let detail = format!("{} must not set securityContext.privileged=true", named_containers(&bad));
    (!bad.is_empty()).then(|| offence("privileged", detail)).flatten()
}

pub(super) fn proc_mount(pod: &Value) -> Option<Offence> {
    let mount = |container: &Value| {
        let mount = container["securityContext"]["procMount"].as_str().filter(|mount| *mount != "Default");
        mount.map(str::to_owned)
    };
    let bad = containers_where(pod, |container| mount(container).is_some());
    if bad.is_empty() {
        return None;
    }
    let values: BTreeSet<String> = containers(pod).filter_map(mount).collect();
    let who = named_containers(&bad);
    offence("procMount", format!("{who} must not set securityContext.procMount to {}", quoted(values)))
}

/// `types` is how many of the types are permitted.
pub(super) fn se_linux(pod: &Value, types: usize) -> Option<Offence> {
    let options = |owner: &Value| owner["securityContext"]["seLinuxOptions"].clone();
    let kind_is_bad = |options: &Value| {
        let kind = text(&options["type"]);
        !kind.is_empty() && !SE_LINUX_TYPES[..types].contains(&kind)
    };
    let is_set = |options: &Value, field: &str| !text(&options[field]).is_empty();
    let is_bad = |owner: &Value| {
        let options = options(owner);
        kind_is_bad(&options) || is_set(&options, "user") || is_set(&options, "role")
    };
    let who = setters(is_bad(&pod["spec"]), &containers_where(pod, is_bad));
    if who.is_empty() {
        return None;
    }
    let all: Vec<Value> = std::iter::once(&pod["spec"]).chain(containers(pod)).map(options).collect();
    let kinds: BTreeSet<&str> = all.iter().filter(|one| kind_is_bad(one)).map(|one| text(&one["type"])).collect();
    let count = kinds.len();
    let kinds = (count > 0).then(|| format!("{} {}", plural("type", "types", count), quoted(kinds)));
    let fields = ["user", "role"].into_iter().filter(|field| all.iter().any(|one| is_set(one, field)));
    let data: Vec<String> = kinds.into_iter().chain(fields.map(|field| format!("{field} may not be set"))).collect();
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", data.join("; "));
    offence("seLinuxOptions", detail)
}

/// Before version 1.19 profiles were annotations.
pub(super) fn seccomp_annotations(pod: &Value) -> Option<Offence> {
    let names: Vec<String> = containers(pod).map(|one| format!("{SECCOMP_CONTAINER}{}", text(&one["name"]))).collect();
    let is_forbidden = |key: &str, value: &str| {
        let is_allowed = matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
        (key == SECCOMP_POD || names.iter().any(|name| name == key)) && !is_allowed
    };
    let bad = annotations(pod, is_forbidden);
    let detail = format!("forbidden {} {}", plural("annotation", "annotations", bad.len()), bad.join(", "));
    (!bad.is_empty()).then(|| offence("seccompProfile", detail)).flatten()
}

pub(super) fn seccomp(pod: &Value) -> Option<Offence> {
    let (pod_sets, bad, values) = profiles(pod, "seccompProfile", &["RuntimeDefault", "Localhost"]);
    let who = setters(pod_sets, &bad);
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    (!who.is_empty()).then(|| offence("seccompProfile", detail)).flatten()
}

/// `permitted` is how many of the names are permitted.
pub(super) fn sysctls(pod: &Value, permitted: usize) -> Option<Offence> {
    let all = pod["spec"]["securityContext"]["sysctls"].as_array().into_iter().flatten();
    let names = all.map(|sysctl| text(&sysctl["name"]));
    let bad: Vec<&str> = names.filter(|name| !SYSCTLS[..permitted].contains(name)).collect();
    (!bad.is_empty()).then(|| offence("forbidden sysctls", bad.join(", "))).flatten()
}

pub(super) fn host_process(pod: &Value) -> Option<Offence> {
    let is_bad = |owner: &Value| owner["securityContext"]["windowsOptions"]["hostProcess"] == true;
    let who = setters(is_bad(&pod["spec"]), &containers_where(pod, is_bad));
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    (!who.is_empty()).then(|| offence("hostProcess", detail)).flatten()
}
