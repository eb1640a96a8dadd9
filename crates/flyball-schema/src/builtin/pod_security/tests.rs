//! The checks, case by case.

use super::*;
use serde_json::json;

fn pod(spec: Value) -> Value {
    let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn check(level: Level, version: Version, pod: &Value) -> String {
    details(&Standard { level, version }.offences(pod))
}

fn container(context: Value) -> Value {
    pod(json!({"containers": [{"name": "c", "securityContext": context}]}))
}

#[test]
fn an_ordinary_pod_meets_the_baseline_and_not_the_restricted_level() {
    let ordinary = pod(json!({}));

    assert_eq!(check(Level::Baseline, Version::Latest, &ordinary), "");
    let offences = "allowPrivilegeEscalation != false (container \"c\" must set \
        securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set \
        securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set \
        securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set \
        securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    assert_eq!(check(Level::Restricted, Version::Latest, &ordinary), offences);
    assert_eq!(
        check(Level::Restricted, Version::Minor(7), &ordinary),
        "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)"
    );
}

#[test]
fn baseline_refuses_what_reaches_the_host() {
    for (pod, detail) in [
        (
            pod(json!({"hostPID": true, "hostIPC": true})),
            "host namespaces (hostPID=true, hostIPC=true)",
        ),
        (
            container(json!({"privileged": true})),
            "privileged (container \"c\" must not set securityContext.privileged=true)",
        ),
        (
            container(json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "BPF"]}})),
            "non-default capabilities (container \"c\" must not include \"BPF\", \"SYS_ADMIN\" in \
             securityContext.capabilities.add)",
        ),
        (
            pod(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})),
            "hostPath volumes (volume \"v\")",
        ),
        (
            pod(json!({"containers": [{"name": "c", "ports": [{"hostPort": 90}, {"hostPort": 8080}]}]})),
            "hostPort (container \"c\" uses hostPorts 8080, 90)",
        ),
        (
            pod(json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}})),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            pod(json!({"securityContext": {"seLinuxOptions": {"type": "x", "user": "u"}}})),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; user may not be set)",
        ),
        (
            pod(json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
    ] {
        assert_eq!(check(Level::Baseline, Version::Latest, &pod), detail);
    }
}

#[test]
fn versions_have_their_own_checks() {
    let probe = json!({"httpGet": {"host": "example.com"}});
    let probing = pod(json!({"containers": [{"name": "c", "livenessProbe": probe}]}));
    let detail = "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"example.com\")";
    assert_eq!(check(Level::Baseline, Version::Minor(33), &probing), "");
    assert_eq!(check(Level::Baseline, Version::Minor(34), &probing), detail);

    let sysctl = pod(json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}));
    assert_eq!(
        check(Level::Baseline, Version::Minor(31), &sysctl),
        "forbidden sysctls (net.ipv4.tcp_rmem)"
    );
    assert_eq!(check(Level::Baseline, Version::Minor(32), &sysctl), "");

    let mut unmasked = container(json!({"procMount": "Unmasked"}));
    unmasked["spec"]["hostUsers"] = false.into();
    let detail = "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")";
    assert_eq!(check(Level::Baseline, Version::Minor(34), &unmasked), detail);
    assert_eq!(check(Level::Baseline, Version::Minor(35), &unmasked), "");
    assert!(check(Level::Restricted, Version::Minor(35), &unmasked).contains(detail));
}

#[test]
fn a_hardened_pod_meets_the_restricted_level() {
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"}});

    assert_eq!(check(Level::Restricted, Version::Latest, &container(context)), "");
}

#[test]
fn labels_choose_the_policy() {
    let namespace = |labels: Value| json!({"metadata": {"labels": labels}});
    let (policy, found) = Policy::of(&namespace(json!({"pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.30"})));
    assert!(found.is_empty());
    assert_eq!((policy.enforce.to_string(), policy.warn), ("baseline:v1.30".into(), policy.enforce));
    assert_eq!(policy.audit.to_string(), "privileged:latest");

    let (policy, found) = Policy::of(&namespace(json!({"pod-security.kubernetes.io/enforce": "strict",
        "pod-security.kubernetes.io/warn-version": "1.2"})));
    assert_eq!((policy.enforce.level, policy.warn.level), (Level::Restricted, Level::Privileged));
    assert_eq!(found.len(), 2);
}
