//! Volumes, claims, and what provides them.

use super::column::{
    AGED, Column, NAME, NAMED, Shown, column, default_name, joined, list, number, or_none, text, wide,
};
use crate::quantity::Quantity;
use serde_json::{Value, json};

fn unset(text: &str) -> &str {
    if text.is_empty() { "<unset>" } else { text }
}

/// `RWO,ROX`.
fn modes(object: &Value, pointer: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = list(object, pointer);
    let shown = SHORT.iter().filter(|(mode, _)| given.iter().any(|one| one == mode));
    shown.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn quantity(object: &Value, pointer: &str) -> String {
    let written = text(object, pointer);
    written.parse::<Quantity>().map_or("0".to_owned(), |quantity| quantity.to_string())
}

/// A claim or volume that is being deleted says so.
fn phase(object: &Value) -> &str {
    match text(object, "/metadata/deletionTimestamp") {
        "" => text(object, "/status/phase"),
        _ => "Terminating",
    }
}

const STORAGE_CLASS_COLUMN: Column = column("StorageClass", "string", "Who provides it.");
const ATTRIBUTES_CLASS: Shown = (column("VolumeAttributesClass", "string", "What it can do besides."), |object, _| {
    json!(unset(text(object, "/spec/volumeAttributesClassName")))
});
const VOLUME_MODE: Shown = (wide("VolumeMode", "string", "Whether it is files or a device."), |object, _| {
    json!(unset(text(object, "/spec/volumeMode")))
});

/// The class, which an annotation gave once.
fn class(object: &Value) -> &str {
    match text(object, "/metadata/annotations/volume.beta.kubernetes.io~1storage-class") {
        "" => text(object, "/spec/storageClassName"),
        class => class,
    }
}

pub(super) const VOLUME: &[Shown] = &[
    NAMED,
    (column("Capacity", "string", "How much fits in."), |object, _| {
        json!(quantity(object, "/spec/capacity/storage"))
    }),
    (column("Access Modes", "string", "How it may be mounted."), |object, _| {
        json!(modes(object, "/spec/accessModes"))
    }),
    (column("Reclaim Policy", "string", "What becomes of it after its claim."), |object, _| {
        json!(text(object, "/spec/persistentVolumeReclaimPolicy"))
    }),
    (column("Status", "string", "Whether it is claimed."), |object, _| json!(phase(object))),
    (column("Claim", "string", "Who claims it."), |object, _| {
        match object.pointer("/spec/claimRef").is_some() {
            true => json!(format!(
                "{}/{}",
                text(object, "/spec/claimRef/namespace"),
                text(object, "/spec/claimRef/name")
            )),
            false => json!(""),
        }
    }),
    (STORAGE_CLASS_COLUMN, |object, _| json!(class(object))),
    ATTRIBUTES_CLASS,
    (column("Reason", "string", "Why it is in this state."), |object, _| {
        json!(text(object, "/status/reason"))
    }),
    AGED,
    VOLUME_MODE,
];

pub(super) const CLAIM: &[Shown] = &[
    NAMED,
    (column("Status", "string", "Whether it is bound."), |object, _| json!(phase(object))),
    (column("Volume", "string", "The volume it is bound to."), |object, _| {
        json!(text(object, "/spec/volumeName"))
    }),
    (column("Capacity", "string", "How much the volume holds."), |object, _| {
        match text(object, "/spec/volumeName") {
            "" => json!(""),
            _ => json!(quantity(object, "/status/capacity/storage")),
        }
    }),
    (
        column("Access Modes", "string", "How the volume may be mounted."),
        |object, _| match text(object, "/spec/volumeName") {
            "" => json!(""),
            _ => json!(modes(object, "/status/accessModes")),
        },
    ),
    (STORAGE_CLASS_COLUMN, |object, _| json!(class(object))),
    ATTRIBUTES_CLASS,
    AGED,
    VOLUME_MODE,
];

pub(super) const STORAGE_CLASS: &[Shown] = &[
    (NAME, |object, _| {
        json!(default_name(object, "storageclass.kubernetes.io/is-default-class"))
    }),
    (column("Provisioner", "string", "Who makes its volumes."), |object, _| {
        json!(text(object, "/provisioner"))
    }),
    (column("ReclaimPolicy", "string", "What becomes of its volumes."), |object, _| {
        json!(text(object, "/reclaimPolicy"))
    }),
    (column("VolumeBindingMode", "string", "When volumes are made."), |object, _| {
        json!(text(object, "/volumeBindingMode"))
    }),
    (column("AllowVolumeExpansion", "string", "Whether claims may grow."), |object, _| {
        json!(object["allowVolumeExpansion"] == true)
    }),
    AGED,
];

pub(super) const ATTRIBUTES: &[Shown] = &[
    NAMED,
    (column("DriverName", "string", "The driver it is for."), |object, _| {
        json!(text(object, "/driverName"))
    }),
    AGED,
];

pub(super) const ATTACHMENT: &[Shown] = &[
    NAMED,
    (column("Attacher", "string", "Who attaches it."), |object, _| {
        json!(text(object, "/spec/attacher"))
    }),
    (column("PV", "string", "What is attached."), |object, _| {
        json!(text(object, "/spec/source/persistentVolumeName"))
    }),
    (column("Node", "string", "Where it is attached."), |object, _| {
        json!(text(object, "/spec/nodeName"))
    }),
    (column("Attached", "boolean", "Whether it is."), |object, _| {
        json!(object.pointer("/status/attached").is_some_and(|flag| *flag == true))
    }),
    AGED,
];

pub(super) const CSI_NODE: &[Shown] = &[
    NAMED,
    (column("Drivers", "integer", "How many drivers the node has."), |object, _| {
        json!(list(object, "/spec/drivers").len())
    }),
    AGED,
];

fn flag(object: &Value, pointer: &str) -> Value {
    json!(object.pointer(pointer).is_some_and(|flag| *flag == true))
}

pub(super) const CSI_DRIVER: &[Shown] = &[
    NAMED,
    (column("AttachRequired", "boolean", "Whether volumes are attached first."), |object, _| {
        flag(object, "/spec/attachRequired")
    }),
    (column("PodInfoOnMount", "boolean", "Whether it is told of the pod."), |object, _| {
        flag(object, "/spec/podInfoOnMount")
    }),
    (column("StorageCapacity", "boolean", "Whether it says how much there is."), |object, _| {
        flag(object, "/spec/storageCapacity")
    }),
    (column("TokenRequests", "string", "The tokens it is given."), |object, _| {
        if object.pointer("/spec/tokenRequests").is_none() {
            return json!("<unset>");
        }
        let audiences = list(object, "/spec/tokenRequests").iter().map(|request| text(request, "/audience"));
        json!(audiences.collect::<Vec<_>>().join(","))
    }),
    (
        column("RequiresRepublish", "boolean", "Whether it is asked again and again."),
        |object, _| flag(object, "/spec/requiresRepublish"),
    ),
    (column("Modes", "string", "The volumes it makes."), |object, _| {
        json!(or_none(&joined(list(object, "/spec/volumeLifecycleModes"), ",")))
    }),
    AGED,
];

pub(super) const PRIORITY_CLASS: &[Shown] = &[
    NAMED,
    (column("Value", "integer", "How much its pods matter."), |object, _| {
        json!(number(object, "/value"))
    }),
    (column("Global-Default", "boolean", "Whether pods have it by default."), |object, _| {
        flag(object, "/globalDefault")
    }),
    AGED,
    (column("PreemptionPolicy", "string", "Whether its pods push others out."), |object, _| {
        json!(text(object, "/preemptionPolicy"))
    }),
];

pub(super) const RUNTIME_CLASS: &[Shown] = &[
    NAMED,
    (column("Handler", "string", "What runs its pods."), |object, _| {
        json!(text(object, "/handler"))
    }),
    AGED,
];
