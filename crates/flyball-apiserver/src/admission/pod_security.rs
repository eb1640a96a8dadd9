//! PodSecurity: pods meet the standard that the labels of their namespace enforce; users are warned of pods and templates
//! that do not meet the one to be warned of, and of pods that a stricter namespace already has; audit events tell of those
//! that do not meet the audited one.
// k8s.io/pod-security-admission/admission/admission.go

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::endpoints::Subresource;
use crate::kinds::core::{NAMESPACE, POD};
use crate::registry::object;
use crate::request::options::causes;
use crate::status::{Result, Status};
use flyball_schema::builtin::pod_security::{self, Level, Policy, Standard};
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Precedes the keys of audit annotations.
const AUDIT: &str = "pod-security.kubernetes.io/";
/// How many pods of a namespace are checked when it becomes stricter.
const MAX_PODS: usize = 3000;

/// The plugin.
pub(super) struct PodSecurity;

impl Plugin for PodSecurity {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_write = attributes.operation != Operation::Delete && attributes.subresource == Subresource::Whole;
        is_write && (attributes.request.kind.is(&NAMESPACE) || template(attributes).is_some())
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            match attributes.request.kind.is(&NAMESPACE) {
                true => check_namespace(attributes).await,
                false => check_pod(attributes).await,
            }
        }
        .boxed()
    }
}

/// The pod that is written, or the template of pods in the object.
// DefaultPodSpecExtractor
fn template<'a>(attributes: &'a Attributes<'_>) -> Option<&'a Value> {
    let resource = &attributes.request.kind.resource;
    let object = &attributes.object;
    let template = match (&*resource.group, &*resource.plural) {
        ("", "pods") => object,
        ("", "podtemplates") => &object["template"],
        ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs")
        | ("", "replicationcontrollers") => &object["spec"]["template"],
        ("batch", "cronjobs") => &object["spec"]["jobTemplate"]["spec"]["template"],
        _ => return None,
    };
    template.is_object().then_some(template)
}

// ValidatePod, ValidatePodController, EvaluatePod
async fn check_pod(attributes: &Attributes<'_>) -> Result<()> {
    let is_pod = attributes.request.kind.is(&POD);
    let (Some(pod), Some(namespace)) = (template(attributes), attributes.namespace) else {
        return Ok(());
    };
    if is_pod && attributes.old.is_some_and(|old| !is_significant(pod, old)) {
        return Ok(());
    }
    let Some(entry) = attributes.get(format!("core/namespaces/{namespace}")).await? else {
        return Ok(());
    };
    let request = attributes.request;
    let (policy, violations) = Policy::of(&object::decode(&entry.value));
    if is_pod {
        request.annotate(format!("{AUDIT}enforce-policy"), policy.enforce.to_string());
    }
    if let Some(violation) = violations.first() {
        request.annotate(format!("{AUDIT}error"), format!("Failed to parse policy: {violation}"));
    }
    if policy.is_privileged() {
        return Ok(());
    }
    let audited = policy.audit.offences(pod);
    if !audited.is_empty() {
        let details = pod_security::details(&audited);
        let violations = format!("would violate PodSecurity \"{}\": {details}", policy.audit);
        request.annotate(format!("{AUDIT}audit-violations"), violations);
    }
    let enforced = if is_pod {
        policy.enforce.offences(pod)
    } else {
        Vec::new()
    };
    if !enforced.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, pod_security::details(&enforced));
        return Err(Status::forbidden(&attributes.request.kind.resource, attributes.name(), why));
    }
    let warned = policy.warn.offences(pod);
    if !warned.is_empty() {
        let details = pod_security::details(&warned);
        attributes
            .request
            .warn(format!("would violate PodSecurity \"{}\": {details}", policy.warn));
    }
    Ok(())
}

/// Whether an update of a pod changes which containers and images it runs.
// isSignificantPodUpdate
fn is_significant(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<Value> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.map(|container| container["image"].clone()).collect()
    };
    ["containers", "initContainers"].iter().any(|list| images(pod, list) != images(old, list))
}

// ValidateNamespace
async fn check_namespace(attributes: &Attributes<'_>) -> Result<()> {
    let (new, violations) = Policy::of(&attributes.object);
    let (old, known) = match attributes.old {
        Some(old) => Policy::of(old),
        None => (new, Vec::new()),
    };
    if !violations.is_empty() && violations != known {
        let kind = &attributes.request.kind.resource;
        return Err(Status::invalid(&kind.group, &kind.kind, attributes.name(), causes(violations)));
    }
    let (new, old) = (new.enforce, old.enforce);
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if new == old || new.level == Level::Privileged || is_relaxed {
        return Ok(());
    }
    let pods = attributes.list(format!("core/pods/{}/", attributes.name())).await?;
    warnings(attributes.name(), new, pods)
        .into_iter()
        .for_each(|text| attributes.request.warn(text));
    Ok(())
}

// EvaluatePodsInNamespace
fn warnings(namespace: &str, standard: Standard, pods: Vec<Value>) -> Vec<String> {
    let total = pods.len();
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in by_priority(pods).iter().take(MAX_PODS) {
        let offences = standard.offences(pod);
        if !offences.is_empty() {
            let name = object::name(pod).to_owned();
            let (first, count) = found.entry(pod_security::reasons(&offences)).or_insert_with(|| (name.clone(), 0));
            *first = std::mem::take(first).min(name);
            *count += 1;
        }
    }
    let mut warnings = Vec::new();
    if total > MAX_PODS {
        let rule = "new PodSecurity enforce level only checked against the first";
        warnings.push(format!("{rule} {MAX_PODS} of {total} existing pods"));
    }
    if !found.is_empty() {
        let rule = format!("violate the new PodSecurity enforce level \"{standard}\"");
        warnings.push(format!("existing pods in namespace {namespace:?} {rule}"));
    }
    let one = |(reasons, (pod, count)): (String, (String, usize))| match count {
        1 => format!("{pod}: {reasons}"),
        2 => format!("{pod} (and 1 other pod): {reasons}"),
        _ => format!("{pod} (and {} other pods): {reasons}", count - 1),
    };
    let mut of_pods: Vec<String> = found.into_iter().map(one).collect();
    of_pods.sort();
    warnings.extend(of_pods);
    warnings
}

/// One pod of each controller first, since the others are like it.
// prioritizePods
fn by_priority(pods: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    let (mut first, rest): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| {
        let owners = pod["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let controller = owners.into_iter().find(|owner| owner["controller"] == true);
        controller.is_none_or(|controller| seen.insert(controller["uid"].as_str().unwrap_or_default().to_owned()))
    });
    first.extend(rest);
    first
}
