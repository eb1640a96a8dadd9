//! Validation of Windows pods and of the fields that only Windows has.
// pkg/apis/core/validation/validation.go, validateWindows, validateLinux, validateWindowsSecurityContextOptions

use crate::builtin::rules::subdomain;
use crate::builtin::spot::{Found, Spot};
use crate::go_text;
use crate::names;
use crate::violation::{Reason, Violation};
use serde_json::Value;

const ON_WINDOWS: &str = "cannot be set for a windows pod";
const ON_LINUX: &str = "windows options cannot be set for a linux pod";

/// The fields that a Windows pod must not set, in upstream's order; some are in its `securityContext`.
const OF_POD: [(&str, Place); 15] = [
    ("appArmorProfile", Place::Context),
    ("seLinuxOptions", Place::Context),
    ("hostUsers", Place::Spec),
    ("hostPID", Place::Spec),
    ("hostIPC", Place::Spec),
    ("seccompProfile", Place::Context),
    ("fsGroup", Place::Context),
    ("fsGroupChangePolicy", Place::Context),
    ("sysctls", Place::Context),
    ("shareProcessNamespace", Place::Spec),
    ("runAsUser", Place::Context),
    ("runAsGroup", Place::Context),
    ("supplementalGroups", Place::Context),
    ("supplementalGroupsPolicy", Place::Context),
    ("seLinuxChangePolicy", Place::Context),
];

/// The fields that a Windows container must not set in its `securityContext`.
const OF_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Spec,
    Context,
}

/// The lists of containers, in the order in which upstream visits them.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Fields that only Linux supports.
pub(super) fn on_windows(spec: &Spot<'_>, found: &mut Found) {
    let context = spec.field("securityContext");
    for (name, place) in OF_POD {
        let field = match place {
            Place::Spec => spec.field(name),
            Place::Context => context.field(name),
        };
        let is_plain_flag = matches!(name, "hostPID" | "hostIPC");
        if field.is_set() && (!is_plain_flag || field.is_true()) {
            field.forbidden(found, ON_WINDOWS);
        }
    }
    for list in CONTAINERS {
        for container in spec.field(list).items() {
            let context = container.field("securityContext");
            let set = OF_CONTAINER.iter().filter(|name| context.field(name).is_set());
            set.for_each(|name| context.field(name).forbidden(found, ON_WINDOWS));
        }
    }
}

/// Fields that only Windows supports.
pub(super) fn on_linux(spec: &Spot<'_>, found: &mut Found) {
    let mut check = |context: &Spot<'_>| {
        if context.field("windowsOptions").is_set() {
            context.field("windowsOptions").forbidden(found, ON_LINUX);
        }
    };
    check(&spec.field("securityContext"));
    for list in CONTAINERS {
        spec.field(list).items().for_each(|container| check(&container.field("securityContext")));
    }
}

/// `windowsOptions` of a pod or a container.
pub(super) fn options(options: &Spot<'_>, found: &mut Found) {
    const MOST_KIB: usize = 64;
    let (name, spec, user) = (
        options.field("gmsaCredentialSpecName"),
        options.field("gmsaCredentialSpec"),
        options.field("runAsUserName"),
    );
    if name.is_set() {
        subdomain(&name, found);
    }
    if spec.is_set() && spec.text().is_empty() {
        spec.invalid(found, "gmsaCredentialSpec cannot be an empty string");
    } else if spec.text().len() > MOST_KIB << 10 {
        spec.invalid(found, &format!("gmsaCredentialSpec size must be under {MOST_KIB} KiB"));
    }
    if user.is_set() {
        user_name(&user, found);
    }
}

fn user_name(spot: &Spot<'_>, found: &mut Found) {
    const MOST_DOMAIN: usize = 256;
    const MOST_USER: usize = 104;
    // Go has a pointer here, and so reports the value as JSON.
    let shown = go_text::json(spot.value);
    let mut wrong = |why: &str| found.push(Violation::with_text(spot.path(), Reason::Invalid, &shown, why));
    let text = spot.text();
    if text.is_empty() {
        return wrong("runAsUserName cannot be an empty string");
    }
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return wrong("runAsUserName cannot contain control characters");
    }
    if text.matches('\\').count() > 1 {
        return wrong("runAsUserName cannot contain more than one backslash");
    }
    let (domain, user) = text.split_once('\\').map_or((None, text), |(domain, user)| (Some(domain), user));
    if domain.is_some_and(|domain| domain.len() >= MOST_DOMAIN) {
        wrong(&format!("runAsUserName's Domain length must be under {MOST_DOMAIN} characters"));
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !names::dns1123_subdomain(&domain.to_lowercase()).is_empty())
    {
        wrong("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        wrong("runAsUserName's User cannot be empty");
    } else if user.len() > MOST_USER {
        wrong(&format!("runAsUserName's User length must not be longer than {MOST_USER} characters"));
    }
    if !user.is_empty() && user.chars().all(|character| matches!(character, '.' | ' ')) {
        wrong("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|character| r#""/\:;|=,+*?<>@[]"#.contains(character)) {
        wrong(r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#);
    }
}

fn is_net_bios(domain: &str) -> bool {
    let length = domain.chars().count();
    let forbidden = |character: char| r#"\/:*?"<>|"#.contains(character);
    (1..=15).contains(&length) && !domain.starts_with('.') && !domain.contains(forbidden)
}

/// HostProcess containers: all containers of a pod or none, and only with `hostNetwork`.
// validateWindowsHostProcessPod
pub(super) fn host_processes(spec: &Spot<'_>, found: &mut Found) {
    let flag = |context: &Value| context["windowsOptions"]["hostProcess"].as_bool();
    let of_pod = flag(&spec.value["securityContext"]);
    let (mut all, mut of_host) = (0, 0);
    for list in CONTAINERS {
        for container in spec.field(list).items() {
            let own = flag(&container.value["securityContext"]);
            if let (Some(pod), Some(own)) = (of_pod, own)
                && pod != own
            {
                let why = format!("pod hostProcess value must be identical if both are specified, was {pod}");
                let context = container.field("securityContext");
                let options = context.field("windowsOptions");
                options.field("hostProcess").invalid(found, &why);
            }
            all += 1;
            of_host += usize::from(own.or(of_pod).unwrap_or(false));
        }
    }
    if of_host > 0 && of_host != all {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        spec.invalid_as(found, "", why);
    }
    if of_host > 0 && !spec.field("hostNetwork").is_true() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        spec.field("hostNetwork").invalid_as(found, false, why);
    }
}
