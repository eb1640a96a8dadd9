//! Validation of environment variables and their sources.
// pkg/apis/core/validation/validation.go, ValidateEnv and ValidateEnvFrom

use crate::builtin::rules::{config_key, empty, label, named, no_backsteps, one_of, quantity, subdomain};
use crate::builtin::spot::{Found, Spot};
use crate::names;

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const FILE_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// The field paths that upstream knows, whether they are allowed here or not.
const KNOWN_FIELDS: [&str; 4] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "status.phase",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";

/// Validates one source of values.
type Check = fn(&Spot<'_>, &mut Found);

/// The sources of a variable.
const SOURCES: [(&str, Check); 5] = [
    ("fieldRef", |spot, found| field(spot, &FIELDS, found)),
    ("resourceFieldRef", resource),
    ("configMapKeyRef", key_of),
    ("secretKeyRef", key_of),
    ("fileKeyRef", file_key),
];

/// `env`.
pub(super) fn variables(variables: &Spot<'_>, found: &mut Found) {
    for variable in variables.items() {
        if !empty(&variable.field("name"), found) {
            named(&variable.field("name"), names::environment_variable, found);
        }
        if variable.field("valueFrom").is_set() {
            source(&variable, found);
        }
    }
}

fn source(variable: &Spot<'_>, found: &mut Found) {
    let from = variable.field("valueFrom");
    let mut count = 0;
    for (name, check) in SOURCES {
        if from.field(name).is_set() {
            count += 1;
            check(&from.field(name), found);
        }
    }
    let why = match count {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !variable.field("value").text().is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    from.invalid_as(found, "", why);
}

/// A `fieldRef` of a variable.
fn field(reference: &Spot<'_>, allowed: &[&str], found: &mut Found) {
    let path = reference.field("fieldPath");
    if empty(&reference.field("apiVersion"), found) || empty(&path, found) {
        return;
    }
    let subscripted = path.text().strip_suffix("']").and_then(|text| text.split_once("['"));
    let (name, subscript) = subscripted.map_or((path.text(), None), |(name, key)| (name, Some(key)));
    let is_known = FIELDS.contains(&name) || KNOWN_FIELDS.contains(&name);
    if !is_known || (subscript.is_some() && !name.starts_with("metadata.")) {
        let why = format!("error converting fieldPath: field label not supported: {}", path.text());
        path.invalid(found, &why);
        return;
    }
    match (name, subscript) {
        ("metadata.annotations", Some(key)) => subscripted_key(reference, &key.to_lowercase(), found),
        ("metadata.labels", Some(key)) => subscripted_key(reference, key, found),
        (name, Some(_)) => reference.invalid_as(found, name, "does not support subscript"),
        _ => one_of(&path, allowed, found),
    }
}

fn subscripted_key(reference: &Spot<'_>, key: &str, found: &mut Found) {
    names::qualified_name(key).iter().for_each(|why| reference.invalid_as(found, key, why));
}

/// A file of a downward API volume: a `fieldRef` or a `resourceFieldRef`.
pub(super) fn file(item: &Spot<'_>, at: &Spot<'_>, found: &mut Found) {
    let (field_ref, resource_ref) = (item.value.get("fieldRef"), item.value.get("resourceFieldRef"));
    match (field_ref, resource_ref) {
        (Some(reference), resource) => {
            field(&at.with("fieldRef", reference), &FILE_FIELDS, found);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                at.invalid_as(found, "resource", why);
            }
        }
        (None, Some(reference)) => {
            let reference = at.with("resourceFieldRef", reference);
            match reference.field("containerName").text().is_empty() {
                true => reference.field("containerName").required(found, ""),
                false => resource(&reference, found),
            }
        }
        (None, None) => at.required(found, "one of fieldRef and resourceFieldRef is required"),
    }
}

/// A resource of a container.
fn resource(reference: &Spot<'_>, found: &mut Found) {
    let resource = reference.field("resource");
    let is_huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.text().starts_with(prefix));
    if !empty(&resource, found) && !is_huge {
        one_of(&resource, &RESOURCES, found);
    }
    divisor(&reference.field("divisor"), resource.text(), found);
}

fn divisor(divisor: &Spot<'_>, resource: &str, found: &mut Found) {
    let Some(quantity) = quantity(divisor.value).filter(|quantity| !quantity.is_zero()) else {
        return;
    };
    let (allowed, what) = match resource.split_once('.').map_or(resource, |(_, name)| name) {
        "cpu" => ("1m and 1", "cpu"),
        "memory" => (SIZES, "memory"),
        "ephemeral-storage" => (SIZES, "local ephemeral storage"),
        name if name.starts_with("hugepages-") => (SIZES, "hugepages"),
        _ => return,
    };
    let text = quantity.to_string();
    if !allowed.split(", ").flat_map(|part| part.split(" and ")).any(|one| one == text) {
        let why = format!("only divisor's values {allowed} are supported with the {what} resource");
        divisor.invalid_as(found, resource, &why);
    }
}

fn key_of(reference: &Spot<'_>, found: &mut Found) {
    subdomain(&reference.field("name"), found);
    config_key(&reference.field("key"), found);
}

fn file_key(reference: &Spot<'_>, found: &mut Found) {
    if !empty(&reference.field("key"), found) {
        named(&reference.field("key"), names::environment_variable, found);
    }
    if !empty(&reference.field("volumeName"), found) {
        label(&reference.field("volumeName"), found);
    }
    if !empty(&reference.field("path"), found) {
        no_backsteps(&reference.field("path"), found);
    }
}

/// `envFrom`.
pub(super) fn sources(sources: &Spot<'_>, found: &mut Found) {
    for source in sources.items() {
        if !source.field("prefix").text().is_empty() {
            named(&source.field("prefix"), names::environment_variable, found);
        }
        let mut count = 0;
        for name in ["configMapRef", "secretRef"] {
            let reference = source.field(name);
            if reference.is_set() {
                count += 1;
                if !empty(&reference.field("name"), found) {
                    subdomain(&reference.field("name"), found);
                }
            }
        }
        match count {
            0 => sources.invalid_as(found, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => sources.invalid_as(found, "", "may not have more than one field specified at a time"),
        }
    }
}
