//! Validation of a pod's volumes.
// pkg/apis/core/validation/validation.go, ValidateVolumes and validateVolumeSource

use super::{environment, legacy};
use crate::builtin::rules::{empty, label, no_backsteps, one_of, quantity, unreserved_path};
use crate::builtin::spot::{Found, Spot};
use crate::builtin::volume;
use std::collections::HashSet;

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

const GOOGLE: &str = "gcePersistentDisk";

/// Validates one source of volumes.
type Check = fn(&Spot<'_>, &mut Found);

/// Every source of volumes, in upstream's order.
const SOURCES: [(&str, Check); 30] = [
    ("emptyDir", empty_dir),
    ("hostPath", host_path),
    ("gitRepo", legacy::git_repo),
    // Validated elsewhere.
    (GOOGLE, |_, _| {}),
    ("awsElasticBlockStore", legacy::amazon),
    ("secret", |spot, found| files(spot, "secretName", found)),
    ("nfs", nfs),
    ("iscsi", legacy::iscsi),
    ("glusterfs", legacy::gluster),
    ("flocker", legacy::flocker),
    ("persistentVolumeClaim", |spot, found| _ = empty(&spot.field("claimName"), found)),
    ("rbd", legacy::rbd),
    ("cinder", legacy::cinder),
    ("cephfs", legacy::ceph),
    ("quobyte", legacy::quobyte),
    ("downwardAPI", downward),
    ("fc", legacy::fibre_channel),
    ("flexVolume", legacy::flex),
    ("configMap", |spot, found| files(spot, "name", found)),
    ("azureFile", legacy::azure_file),
    ("vsphereVolume", |spot, found| _ = empty(&spot.field("volumePath"), found)),
    ("photonPersistentDisk", |spot, found| _ = empty(&spot.field("pdID"), found)),
    ("portworxVolume", |spot, found| _ = empty(&spot.field("volumeID"), found)),
    ("azureDisk", legacy::azure_disk),
    ("storageos", legacy::storage_os),
    ("projected", projected),
    ("scaleIO", legacy::scale_io),
    ("csi", |spot, found| _ = empty(&spot.field("driver"), found)),
    ("ephemeral", ephemeral),
    ("image", |_, _| {}),
];

/// `volumes`. An invalid volume counts as absent for volume mounts.
pub(super) fn validate<'a>(volumes: &Spot<'a>, found: &mut Found) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for volume in volumes.items() {
        let before = found.len();
        source(&volume, found);
        let name = volume.field("name");
        if !empty(&name, found) {
            label(&name, found);
        }
        let text = volume.value.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
        if names.contains(text) {
            name.duplicate(found, text);
        }
        if found.len() == before {
            names.insert(text.to_owned());
        }
    }
    let all = volumes.value.as_array().into_iter().flatten();
    all.filter_map(|volume| volume["name"].as_str())
        .filter(|name| names.contains(*name))
        .collect()
}

fn source(volume: &Spot<'_>, found: &mut Found) {
    let mut set = SOURCES.iter().filter(|(name, _)| volume.field(name).is_set());
    let Some((name, check)) = set.next() else {
        volume.required(found, "must specify a volume type");
        return;
    };
    match *name {
        GOOGLE => legacy::google(volume, &volume.field(name), found),
        _ => check(&volume.field(name), found),
    }
    set.for_each(|(name, _)| volume.field(name).forbidden(found, "may not specify more than 1 volume type"));
}

fn empty_dir(source: &Spot<'_>, found: &mut Found) {
    let limit = source.field("sizeLimit");
    if quantity(limit.value).is_some_and(|quantity| quantity.is_negative()) {
        limit.forbidden(found, "SizeLimit field must be a valid resource quantity");
    }
}

fn host_path(source: &Spot<'_>, found: &mut Found) {
    if !empty(&source.field("path"), found) {
        no_backsteps(&source.field("path"), found);
        one_of(&source.field("type"), &HOST_PATHS, found);
    }
}

fn nfs(source: &Spot<'_>, found: &mut Found) {
    empty(&source.field("server"), found);
    empty(&source.field("path"), found);
    if !source.field("path").text().starts_with('/') {
        source
            .field("path")
            .invalid_as(found, source.field("path").text(), "must be an absolute path");
    }
}

fn mode(spot: &Spot<'_>, found: &mut Found) {
    if spot.is_set() && !(0..=0o777).contains(&spot.int()) {
        spot.invalid(found, MODE);
    }
}

/// A ConfigMap or Secret whose keys are files.
fn files(source: &Spot<'_>, name: &str, found: &mut Found) {
    empty(&source.field(name), found);
    mode(&source.field("defaultMode"), found);
    source.field("items").items().for_each(|item| key_to_path(&item, found));
}

fn key_to_path(item: &Spot<'_>, found: &mut Found) {
    empty(&item.field("key"), found);
    empty(&item.field("path"), found);
    unreserved_path(&item.field("path"), found);
    mode(&item.field("mode"), found);
}

fn downward(source: &Spot<'_>, found: &mut Found) {
    mode(&source.field("defaultMode"), found);
    source.field("items").items().for_each(|item| downward_file(&item, source, found));
}

/// A file of the downward API; upstream reports its violations at the list.
fn downward_file(item: &Spot<'_>, at: &Spot<'_>, found: &mut Found) {
    let path = at.with("path", item.value.get("path").unwrap_or(&serde_json::Value::Null));
    empty(&path, found);
    unreserved_path(&path, found);
    environment::file(item, at, found);
}

fn projected(source: &Spot<'_>, found: &mut Found) {
    mode(&source.field("defaultMode"), found);
    let mut paths = HashSet::new();
    for part in source.field("sources").items() {
        for name in ["secret", "configMap"] {
            let projection = part.field(name);
            if projection.is_set() {
                empty(&projection.field("name"), found);
            }
            for item in projection.field("items").items() {
                key_to_path(&item, found);
                unique_path(&item, projection.field("name").text(), source, &mut paths, found);
            }
        }
        for item in part.field("downwardAPI").field("items").items() {
            downward_file(&item, &part.field("downwardAPI"), found);
            unique_path(&item, item.field("path").text(), source, &mut paths, found);
        }
        token(&part.field("serviceAccountToken"), source, found);
        if part.len() > 1 {
            part.forbidden(found, "may not specify more than 1 volume type per source");
        }
    }
}

fn unique_path(item: &Spot<'_>, shown: &str, at: &Spot<'_>, paths: &mut HashSet<String>, found: &mut Found) {
    let path = item.field("path");
    if !path.text().is_empty() && !paths.insert(path.text().to_owned()) {
        at.invalid_as(found, shown, "conflicting duplicate paths");
    }
}

fn token(token: &Spot<'_>, at: &Spot<'_>, found: &mut Found) {
    if !token.is_set() {
        return;
    }
    let seconds = token.field("expirationSeconds");
    if seconds.int() < 600 {
        seconds.invalid(found, "may not specify a duration less than 10 minutes");
    }
    if seconds.int() > 1 << 32 {
        seconds.invalid(found, "may not specify a duration larger than 2^32 seconds");
    }
    let path = token.field("path");
    let told = at.with("path", path.value);
    if !empty(&told, found) {
        unreserved_path(&told, found);
    }
}

fn ephemeral(source: &Spot<'_>, found: &mut Found) {
    let template = source.field("volumeClaimTemplate");
    match template.is_set() {
        true => volume::validate_claim_spec(&template.field("spec"), found),
        false => template.required(found, ""),
    }
}
