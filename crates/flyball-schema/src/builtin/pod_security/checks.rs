//! The table of checks: level, name, and the first version in which each form of a check applies.
// policy/check_*.go

use super::{Level, Offence, baseline, restricted};
use serde_json::Value;

/// One form of a check.
pub(super) struct Check {
    pub(super) level: Level,
    pub(super) name: &'static str,
    /// The first minor version with this form.
    pub(super) since: u32,
    /// The check of `baseline` that this one replaces.
    pub(super) overrides: Option<&'static str>,
    /// Finds the offence of a pod.
    pub(super) run: fn(&Value) -> Option<Offence>,
}

const fn baseline(name: &'static str, since: u32, run: fn(&Value) -> Option<Offence>) -> Check {
    Check { level: Level::Baseline, name, since, overrides: None, run }
}

const fn restricted(
    name: &'static str,
    since: u32,
    overrides: Option<&'static str>,
    run: fn(&Value) -> Option<Offence>,
) -> Check {
    Check { level: Level::Restricted, name, since, overrides, run }
}

/// The checks of `baseline`, then those of `restricted`, each by name and version.
pub(super) static CHECKS: &[Check] = &[
    baseline("appArmorProfile", 0, baseline::app_armor),
    baseline("capabilities_baseline", 0, baseline::capabilities),
    baseline("hostNamespaces", 0, baseline::host_namespaces),
    baseline("hostPathVolumes", 0, baseline::host_paths),
    baseline("hostPorts", 0, baseline::host_ports),
    baseline("hostProbesAndHostLifecycle", 34, baseline::probe_hosts),
    baseline("privileged", 0, baseline::privileged),
    baseline("procMount", 0, baseline::proc_mount),
    baseline("procMount", 35, |pod| outside_user_namespace(pod, baseline::proc_mount)),
    baseline("seLinuxOptions", 0, |pod| baseline::se_linux(pod, 3)),
    baseline("seLinuxOptions", 31, |pod| baseline::se_linux(pod, 4)),
    baseline("seccompProfile_baseline", 0, baseline::seccomp_annotations),
    baseline("seccompProfile_baseline", 19, baseline::seccomp),
    baseline("sysctls", 0, |pod| baseline::sysctls(pod, 5)),
    baseline("sysctls", 27, |pod| baseline::sysctls(pod, 6)),
    baseline("sysctls", 29, |pod| baseline::sysctls(pod, 10)),
    baseline("sysctls", 32, |pod| baseline::sysctls(pod, 12)),
    baseline("windowsHostProcess", 0, baseline::host_process),
    restricted("allowPrivilegeEscalation", 8, None, restricted::privilege_escalation),
    restricted("allowPrivilegeEscalation", 25, None, |pod| {
        outside_windows(pod, restricted::privilege_escalation)
    }),
    restricted("capabilities_restricted", 22, Some("capabilities_baseline"), restricted::capabilities),
    restricted("capabilities_restricted", 25, Some("capabilities_baseline"), |pod| {
        outside_windows(pod, restricted::capabilities)
    }),
    restricted("procMount_restricted", 35, Some("procMount"), baseline::proc_mount),
    restricted("restrictedVolumes", 0, Some("hostPathVolumes"), restricted::volumes),
    restricted("runAsNonRoot", 0, None, restricted::run_as_non_root),
    restricted("runAsNonRoot", 35, None, |pod| outside_user_namespace(pod, restricted::run_as_non_root)),
    restricted("runAsUser", 23, None, restricted::run_as_user),
    restricted("runAsUser", 35, None, |pod| outside_user_namespace(pod, restricted::run_as_user)),
    restricted("seccompProfile_restricted", 19, Some("seccompProfile_baseline"), restricted::seccomp),
    restricted("seccompProfile_restricted", 25, Some("seccompProfile_baseline"), |pod| {
        outside_windows(pod, restricted::seccomp)
    }),
];

/// Windows has none of these settings.
fn outside_windows(pod: &Value, check: fn(&Value) -> Option<Offence>) -> Option<Offence> {
    let is_windows = pod["spec"]["os"]["name"] == "windows";
    (!is_windows).then(|| check(pod)).flatten()
}

/// A pod in a user namespace of its own is harmless in this respect.
fn outside_user_namespace(pod: &Value, check: fn(&Value) -> Option<Offence>) -> Option<Offence> {
    let is_relaxed = pod["spec"]["hostUsers"] == false;
    (!is_relaxed).then(|| check(pod)).flatten()
}
