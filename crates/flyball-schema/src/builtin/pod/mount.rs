//! Validation of volume mounts and volume devices.
// pkg/apis/core/validation/validation.go, ValidateVolumeMounts and ValidateVolumeDevices

use super::Shape;
use crate::builtin::rules::{descending_path, empty, one_of};
use crate::builtin::spot::{Found, Spot};
use std::collections::HashSet;

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

/// `volumeMounts`. Upstream reports violations of an item's paths at the list.
pub(super) fn validate(container: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    let (mounts, devices) = (container.field("volumeMounts"), container.field("volumeDevices"));
    let privileged = container.field("securityContext").field("privileged").is_true();
    let mut taken = HashSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        empty(&name, found);
        if !shape.has_volume(name.text()) {
            name.not_found(found, name.text());
        }
        empty(&path, found);
        if !taken.insert(path.text().to_owned()) {
            path.invalid(found, "must be unique");
        }
        if devices.items().any(|device| device.field("name").text() == name.text()) {
            name.invalid(found, "must not already exist in volumeDevices");
        }
        sub_paths(&mounts, &mount, found);
        propagation(&mounts, &mount, privileged, found);
        recursive_read_only(&mounts, &mount, found);
    }
}

fn sub_paths(mounts: &Spot<'_>, mount: &Spot<'_>, found: &mut Found) {
    let (path, expression) = (mount.field("subPath"), mount.field("subPathExpr"));
    if !path.text().is_empty() {
        descending_path(&mounts.with("subPath", path.value), found);
    }
    if !expression.text().is_empty() {
        if !path.text().is_empty() {
            expression.invalid(found, "subPathExpr and subPath are mutually exclusive");
        }
        descending_path(&mounts.with("subPathExpr", expression.value), found);
    }
}

fn propagation(mounts: &Spot<'_>, mount: &Spot<'_>, privileged: bool, found: &mut Found) {
    let propagation = mount.field("mountPropagation");
    let told = mounts.with("mountPropagation", propagation.value);
    if propagation.is_set() {
        one_of(&told, &PROPAGATIONS, found);
    }
    if propagation.text() == "Bidirectional" && !privileged {
        told.forbidden(found, "Bidirectional mount propagation is available only to privileged containers");
    }
}

fn recursive_read_only(mounts: &Spot<'_>, mount: &Spot<'_>, found: &mut Found) {
    let wanted = mount.field("recursiveReadOnly");
    let told = mounts.with("recursiveReadOnly", wanted.value);
    match wanted.text() {
        "Enabled" | "IfPossible" => {
            if !mount.field("readOnly").is_true() {
                told.forbidden(found, "may only be specified when readOnly is true");
            }
            if !matches!(mount.field("mountPropagation").text(), "" | "None") {
                told.forbidden(found, "may only be specified when mountPropagation is None or not specified");
            }
        }
        _ if wanted.is_set() => one_of(&told, &RECURSIVE, found),
        _ => {}
    }
}

/// `volumeDevices`.
pub(super) fn validate_devices(container: &Spot<'_>, shape: &Shape<'_>, found: &mut Found) {
    let mut names = HashSet::new();
    for device in container.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        empty(&name, found);
        if !names.insert(name.text().to_owned()) {
            name.invalid(found, "must be unique");
        }
        match shape.volume(name.text()) {
            Some(volume) if !volume["persistentVolumeClaim"].is_object() && !volume["ephemeral"].is_object() => {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                name.invalid(found, why);
            }
            Some(_) => {}
            None => name.not_found(found, name.text()),
        }
        empty(&path, found);
        if path.text().split('/').any(|part| part == "..") {
            path.invalid(found, "can not contain backsteps ('..')");
        }
    }
}
