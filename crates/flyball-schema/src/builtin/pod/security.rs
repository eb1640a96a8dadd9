//! Validation of the security contexts of pods and containers.
// pkg/apis/core/validation/validation.go, ValidateSecurityContext and validatePodSpecSecurityContext

use super::windows;
use crate::builtin::rules::{descending_path, id, maybe_one_of, surely_one_of};
use crate::builtin::spot::{Found, Spot};
use crate::names;
use serde_json::{Value, json};
use std::collections::HashSet;

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The fields of a container under the names of Go's internal type.
const CONTAINER_FIELDS: [(&str, &str); 12] = [
    ("Capabilities", "capabilities"),
    ("Privileged", "privileged"),
    ("SELinuxOptions", "seLinuxOptions"),
    ("WindowsOptions", "windowsOptions"),
    ("RunAsUser", "runAsUser"),
    ("RunAsGroup", "runAsGroup"),
    ("RunAsNonRoot", "runAsNonRoot"),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
    ("ProcMount", "procMount"),
    ("SeccompProfile", "seccompProfile"),
    ("AppArmorProfile", "appArmorProfile"),
];

/// A container's `securityContext`.
pub(super) fn validate_container(context: &Spot<'_>, spec: &Value, found: &mut Found) {
    if !context.is_set() {
        return;
    }
    id(&context.field("runAsUser"), found);
    id(&context.field("runAsGroup"), found);
    maybe_one_of(&context.field("procMount"), &["Default", "Unmasked"], found);
    if context.field("procMount").text() == "Unmasked" && spec["hostUsers"] != false {
        context.field("procMount").invalid(found, "`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(&context.field("seccompProfile"), found);
    no_escalation(context, found);
    windows::options(&context.field("windowsOptions"), found);
    app_armor(&context.field("appArmorProfile"), found);
}

fn no_escalation(context: &Spot<'_>, found: &mut Found) {
    if *context.field("allowPrivilegeEscalation").value != json!(false) {
        return;
    }
    let shown = || -> Value {
        let field = |(name, field): &(&str, &str)| ((*name).to_owned(), context.value[*field].clone());
        CONTAINER_FIELDS.iter().map(field).collect::<serde_json::Map<_, _>>().into()
    };
    if context.field("privileged").is_true() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        context.invalid_as(found, shown(), why);
    }
    let added = context.value["capabilities"]["add"].as_array();
    if added.is_some_and(|added| added.iter().any(|one| one == "CAP_SYS_ADMIN")) {
        let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        context.invalid_as(found, shown(), why);
    }
}

/// A pod's `securityContext`, which in Go's internal type includes the host namespaces.
pub(super) fn validate_pod(spec: &Spot<'_>, found: &mut Found) {
    let context = spec.field("securityContext");
    ["fsGroup", "runAsUser", "runAsGroup"]
        .iter()
        .for_each(|field| id(&context.field(field), found));
    context.field("supplementalGroups").items().for_each(|group| id(&group, found));
    if spec.field("shareProcessNamespace").is_true() && spec.field("hostPID").is_true() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        context.with("shareProcessNamespace", &Value::Bool(true)).invalid(found, why);
    }
    sysctls(&context.field("sysctls"), spec, found);
    maybe_one_of(&context.field("fsGroupChangePolicy"), &["Always", "OnRootMismatch"], found);
    seccomp(&context.field("seccompProfile"), found);
    windows::options(&context.field("windowsOptions"), found);
    app_armor(&context.field("appArmorProfile"), found);
    maybe_one_of(&context.field("supplementalGroupsPolicy"), &["Merge", "Strict"], found);
    maybe_one_of(&context.field("seLinuxChangePolicy"), &["MountOption", "Recursive"], found);
}

fn sysctls(sysctls: &Spot<'_>, spec: &Spot<'_>, found: &mut Found) {
    let mut names = HashSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.text().is_empty() {
            name.required(found, "");
        } else if !is_sysctl(name.text()) {
            name.invalid(found, SYSCTL);
        } else if names.contains(name.text()) {
            name.duplicate(found, name.text());
        }
        if name.text().starts_with("net.") && spec.field("hostNetwork").is_true() {
            name.invalid(found, "may not be specified when 'hostNetwork' is true");
        }
        names.insert(name.text().to_owned());
    }
}

fn is_sysctl(name: &str) -> bool {
    let part = |part: &str| names::dns1123_label(&part.replace('_', "-")).is_empty() && !part.contains("._");
    name.len() <= 253 && name.split(['.', '/']).all(part)
}

/// A seccomp profile; Go reports the whole profile as the value.
fn seccomp(profile: &Spot<'_>, found: &mut Found) {
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.text() {
        "" => kind.required(found, "type is required when seccompProfile is set"),
        _ => surely_one_of(&kind, &PROFILES, found),
    }
    match (kind.text() == "Localhost", local.is_set()) {
        (true, false) => local.required(found, "must be set when seccomp type is Localhost"),
        (true, true) => descending_path(&local, found),
        (false, true) => {
            let shown = json!({"Type": kind.text(), "LocalhostProfile": local.text()});
            local.invalid_as(found, shown, "can only be set when seccomp type is Localhost");
        }
        (false, false) => {}
    }
}

fn app_armor(profile: &Spot<'_>, found: &mut Found) {
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match (kind.text(), local.is_set()) {
        ("Localhost", false) => local.required(found, "must be set when AppArmor type is Localhost"),
        ("RuntimeDefault" | "Unconfined", true) => {
            local.invalid(found, "can only be set when AppArmor type is Localhost");
        }
        ("", _) => kind.required(found, "type is required when appArmorProfile is set"),
        _ => surely_one_of(&kind, &PROFILES, found),
    }
}
