//! Validation of the in-tree volume types that CSI drivers have replaced.
// pkg/apis/core/validation/validation.go, validateVolumeSource and what it calls

use crate::builtin::rules::{descending_path, empty, label, one_of, within};
use crate::builtin::spot::{Found, Spot};
use crate::pattern::Pattern;
use crate::violation::Violation;
use std::sync::LazyLock;

const CACHING: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISKS: [&str; 3] = ["Dedicated", "Managed", "Shared"];
const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
const REGISTRY: &str = "must be a host:port pair or multiple pairs separated by commas";

/// Requires several texts.
fn all_given(source: &Spot<'_>, fields: &[&str], found: &mut Found) {
    for field in fields {
        empty(&source.field(field), found);
    }
}

fn no_items(list: &Spot<'_>, found: &mut Found) {
    if list.len() == 0 {
        list.required(found, "");
    }
}

fn secret_is_named(source: &Spot<'_>, found: &mut Found) {
    let secret = source.field("secretRef");
    if secret.is_set() {
        empty(&secret.field("name"), found);
    }
}

pub(super) fn git_repo(source: &Spot<'_>, found: &mut Found) {
    empty(&source.field("repository"), found);
    descending_path(&source.field("directory"), found);
}

/// The partition of a disk; 0 means none.
fn partition(source: &Spot<'_>, found: &mut Found) {
    let partition = source.field("partition");
    if !(0..=255).contains(&partition.int()) {
        partition.invalid(found, "must be between 1 and 255, inclusive");
    }
}

/// Upstream reports it as `persistentDisk`.
pub(super) fn google(volume: &Spot<'_>, source: &Spot<'_>, found: &mut Found) {
    let source = volume.with("persistentDisk", source.value);
    empty(&source.field("pdName"), found);
    partition(&source, found);
}

pub(super) fn amazon(source: &Spot<'_>, found: &mut Found) {
    empty(&source.field("volumeID"), found);
    partition(source, found);
}

pub(super) fn iscsi(source: &Spot<'_>, found: &mut Found) {
    empty(&source.field("targetPortal"), found);
    if !empty(&source.field("iqn"), found) {
        initiator(&source.field("iqn"), found);
    }
    within(&source.field("lun"), 0, 255, found);
    let logs_in = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|field| source.field(field).is_true());
    if logs_in && !source.field("secretRef").is_set() {
        source.field("secretRef").required(found, "");
    }
    let name = source.field("initiatorName");
    if name.is_set() {
        initiator(&source.with("initiatorname", name.value), found);
    }
}

fn initiator(spot: &Spot<'_>, found: &mut Found) {
    static FORMS: LazyLock<[(&str, Pattern); 3]> = LazyLock::new(|| {
        [
            ("iqn", Pattern::checked(r"iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$")),
            ("eui", Pattern::checked("^eui.[[:alnum:]]{16}$")),
            ("naa", Pattern::checked("^naa.[[:alnum:]]{32}$")),
        ]
    });
    match FORMS.iter().find(|(prefix, _)| spot.text().starts_with(prefix)) {
        None => spot.invalid(found, "must be valid format starting with iqn, eui, or naa"),
        Some((_, form)) if !form.is_match(spot.text()) => spot.invalid(found, "must be valid format"),
        Some(_) => {}
    }
}

pub(super) fn gluster(source: &Spot<'_>, found: &mut Found) {
    all_given(source, &["endpoints", "path"], found);
}

pub(super) fn flocker(source: &Spot<'_>, found: &mut Found) {
    let (name, uuid) = (source.field("datasetName"), source.field("datasetUUID"));
    match (name.text().is_empty(), uuid.text().is_empty()) {
        (true, true) => source.required(found, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            source.invalid_as(found, "resource", "datasetName and datasetUUID can not be specified simultaneously");
        }
        _ => {}
    }
    if name.text().contains('/') {
        name.invalid(found, "must not contain '/'");
    }
}

pub(super) fn rbd(source: &Spot<'_>, found: &mut Found) {
    no_items(&source.field("monitors"), found);
    empty(&source.field("image"), found);
}

pub(super) fn cinder(source: &Spot<'_>, found: &mut Found) {
    empty(&source.field("volumeID"), found);
    secret_is_named(source, found);
}

pub(super) fn ceph(source: &Spot<'_>, found: &mut Found) {
    no_items(&source.field("monitors"), found);
}

pub(super) fn quobyte(source: &Spot<'_>, found: &mut Found) {
    let registry = source.field("registry");
    if registry.text().is_empty() {
        registry.required(found, REGISTRY);
    } else if source.field("tenant").text().len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        source.field("tenant").required(found, why);
    } else {
        let wrong = registry.text().split(',').filter(|pair| pair.matches(':').count() != 1);
        wrong.for_each(|_| registry.invalid(found, REGISTRY));
    }
    empty(&source.field("volume"), found);
}

pub(super) fn fibre_channel(source: &Spot<'_>, found: &mut Found) {
    let (names, ids, lun) = (source.field("targetWWNs"), source.field("wwids"), source.field("lun"));
    match (names.len(), ids.len()) {
        (0, 0) => names.required(found, "must specify either targetWWNs or wwids, but not both"),
        (0, _) | (_, 0) => {}
        _ => names.invalid(found, "targetWWNs and wwids can not be specified simultaneously"),
    }
    if names.len() > 0 && !lun.is_set() {
        lun.required(found, "lun is required if targetWWNs is specified");
    } else if names.len() > 0 {
        within(&lun, 0, 255, found);
    }
}

pub(super) fn flex(source: &Spot<'_>, found: &mut Found) {
    empty(&source.field("driver"), found);
    for (name, option) in source.field("options").entries() {
        let namespace = name.split_once('/').map_or(name, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            option.invalid_as(found, name, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

pub(super) fn azure_file(source: &Spot<'_>, found: &mut Found) {
    all_given(source, &["secretName", "shareName"], found);
}

pub(super) fn azure_disk(source: &Spot<'_>, found: &mut Found) {
    all_given(source, &["diskName", "diskURI"], found);
    let (caching, kind, place) = (source.field("cachingMode"), source.field("kind"), source.field("diskURI"));
    if caching.is_set() {
        one_of(&caching, &CACHING, found);
    }
    if kind.is_set() {
        one_of(&kind, &DISKS, found);
    }
    let (prefix, form) = match kind.text() {
        "Managed" => ("/subscriptions/", MANAGED),
        _ => ("https://", BLOB),
    };
    if kind.is_set() && !place.text().starts_with(prefix) {
        found.push(Violation::not_supported(place.path(), place.text(), &[form]));
    }
}

pub(super) fn storage_os(source: &Spot<'_>, found: &mut Found) {
    if !empty(&source.field("volumeName"), found) {
        label(&source.field("volumeName"), found);
    }
    if !source.field("volumeNamespace").text().is_empty() {
        label(&source.field("volumeNamespace"), found);
    }
    secret_is_named(source, found);
}

pub(super) fn scale_io(source: &Spot<'_>, found: &mut Found) {
    all_given(source, &["gateway", "system", "volumeName"], found);
}
