//! An object as the API server sent it: its JSON, and the few words of its metadata that the framework works by.
//!
//! `metadata.managedFields` is kept apart from the JSON, and of it only what the operator applied itself.

mod json;
mod managed;
mod template;

pub(crate) use json::Json;
pub(crate) use managed::{extract, missing};
pub(crate) use template::Template;

use crate::Key;
use crate::cache::kind::Kind;
use json::Kept;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, PartialObjectMeta};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{json, value::RawValue};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// One version of one object. It is decoded into its Rust type at each read.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) uid: Box<str>,
    /// `resourceVersion` as a number, by which two versions of an object compare; 0 if it is none.
    pub(crate) version: u64,
    /// Whether it is being deleted.
    pub(crate) terminating: bool,
    /// `status.phase`, if it has one: read once, since every scrape of the metrics counts the objects by it.
    pub(crate) phase: Option<Box<str>>,
    /// Its owners: read once, since every controller that follows owners or dependents asks.
    pub(crate) owners: Box<[Owner<'static>]>,
    /// Its JSON without `managedFields`, followed by the value of `managedFields`.
    text: Kept,
    /// The length of the JSON in it.
    json_length: u32,
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Phased<'a> {
    #[serde(borrow)]
    phase: Cow<'a, str>,
}

/// What the framework reads of an object's metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) resource_version: Cow<'a, str>,
    #[serde(default)]
    pub(crate) generation: i64,
    #[serde(borrow)]
    deletion_timestamp: Option<&'a RawValue>,
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default)]
    pub(crate) finalizers: Vec<String>,
    #[serde(borrow, default)]
    pub(crate) owner_references: Vec<Owner<'a>>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Debug, Deserialize, Hash, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner<'a> {
    #[serde(borrow)]
    pub(crate) api_version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(default)]
    pub(crate) controller: bool,
    #[serde(default)]
    pub(crate) block_owner_deletion: bool,
}

impl Object {
    pub(crate) fn parse(json: impl AsRef<str>) -> serde_json::Result<Object> {
        let json = json.as_ref();
        let Header { metadata, status } = serde_json::from_str(json)?;
        // The status of a custom resource may be anything.
        let phased = status.and_then(|status| serde_json::from_str::<Phased<'_>>(status.get()).ok());
        let phase = phased.map(|phased| phased.phase.into());
        let key = Key::new(Some(&metadata.namespace), &metadata.name);
        let uid = Box::from(metadata.uid.as_ref());
        let version = metadata.resource_version.parse().unwrap_or_default();
        let terminating = metadata.is_terminating();
        let owners = metadata.owner_references.into_iter().map(Owner::into_owned).collect();
        let (json, managed) = managed::split(json)?;
        let (text, json_length) = joined(&json, &managed);
        Ok(Object {
            key,
            uid,
            version,
            terminating,
            phase,
            owners,
            text,
            json_length,
        })
    }

    pub(crate) fn json(&self) -> Json<'_> {
        self.text.read(0..self.json_length as usize)
    }

    /// `metadata.managedFields`, as much of it as is kept.
    fn managed(&self) -> Json<'_> {
        self.text.read(self.json_length as usize..usize::MAX)
    }

    /// The fields that a manager has applied, to a subresource or (`""`) to the object itself.
    pub(crate) fn applied_fields(&self, manager: &str, subresource: &str) -> Option<serde_json::Value> {
        managed::applied_fields(&self.managed(), manager, subresource)
    }

    /// This object with no more of `managedFields` than what `manager`, or one named after it, has applied.
    pub(crate) fn managed_by(self, manager: &str) -> Object {
        if self.managed().is_empty() {
            return self;
        }
        let managed = managed::applied_by(&self.managed(), manager);
        let (text, json_length) = joined(&self.json(), &managed);
        Object { text, json_length, ..self }
    }

    /// An object with other contents, and the `managedFields` of this one.
    pub(crate) fn with_json(&self, json: impl AsRef<str>) -> serde_json::Result<Object> {
        let object = Object::parse(json)?;
        let (text, json_length) = joined(&object.json(), &self.managed());
        Ok(Object { text, json_length, ..object })
    }

    /// The same object as its difference to a template, unless that is more than half of it.
    pub(crate) fn packed(self, template: &Arc<Template>) -> Object {
        let (packed, whole) = {
            let text = self.text();
            (template.pack(&text), text.len())
        };
        if packed.len() > whole / 2 {
            return self;
        }
        let text = Kept::Packed(template.clone(), packed.into());
        Object { text, ..self }
    }

    /// All that is kept: what templates are made of.
    pub(crate) fn text(&self) -> Json<'_> {
        self.text.read(0..usize::MAX)
    }

    pub(crate) fn decode<K: DeserializeOwned>(&self) -> serde_json::Result<Arc<K>> {
        serde_json::from_str(&self.json()).map(Arc::new)
    }

    /// How much memory it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Object>() + self.text.len() + self.uid.len() + self.owners.len() * size_of::<Owner<'_>>()
    }

    /// Whether the object with this uid is the owner that controls this one.
    pub(crate) fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    /// The owner that controls this object.
    pub(crate) fn controller(&self) -> Option<&Owner<'static>> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// The version as the API server wrote it.
    pub(crate) fn resource_version(&self) -> String {
        match self.version {
            0 => self.json().meta().resource_version.into_owned(),
            version => version.to_string(),
        }
    }

    /// The metadata, as a type for any kind.
    pub(crate) fn metadata(&self) -> Arc<PartialObjectMeta<DynamicObject>> {
        self.decode().expect("its metadata was parsed before")
    }

    /// The value of one of the object's top fields, if it has it.
    pub(crate) fn field(&self, name: &str) -> Option<serde_json::Value> {
        serde_json::from_str(self.json().raw(name)?.get()).ok()
    }

    /// This object with nothing but its metadata.
    pub(crate) fn into_metadata(self) -> Object {
        #[derive(Deserialize)]
        struct Whole<'a> {
            #[serde(borrow)]
            metadata: BTreeMap<Cow<'a, str>, &'a RawValue>,
        }
        let json = {
            let json = self.json();
            let Whole { metadata } = serde_json::from_str(&json).expect("parsed before");
            json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata }).to_string()
        };
        let (text, json_length) = joined(&json, &self.managed());
        Object { text, json_length, ..self }
    }
}

fn joined(json: &str, managed: &str) -> (Kept, u32) {
    let length = u32::try_from(json.len()).expect("an API server sends no object of 4 GiB");
    (Kept::Whole([json, managed].concat().into()), length)
}

impl Owner<'_> {
    fn into_owned(self) -> Owner<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Owner {
            api_version: owned(self.api_version),
            kind: owned(self.kind),
            name: owned(self.name),
            uid: owned(self.uid),
            controller: self.controller,
            block_owner_deletion: self.block_owner_deletion,
        }
    }

    /// Whether the owner is of this kind, in whichever version.
    pub(crate) fn is_a(&self, kind: &Kind) -> bool {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == kind.name() && group == kind.resource.group
    }
}

impl<'a> From<&'a OwnerReference> for Owner<'a> {
    fn from(reference: &'a OwnerReference) -> Owner<'a> {
        Owner {
            api_version: Cow::from(&reference.api_version),
            kind: Cow::from(&reference.kind),
            name: Cow::from(&reference.name),
            uid: Cow::from(&reference.uid),
            controller: reference.controller.unwrap_or_default(),
            block_owner_deletion: reference.block_owner_deletion.unwrap_or_default(),
        }
    }
}

impl Meta<'_> {
    /// Whether an object that was answered to a write is gone: it has no grace period left and no finalizers.
    pub(crate) fn is_gone(&self) -> bool {
        self.deletion_grace_period_seconds == Some(0) && self.finalizers.is_empty()
    }

    /// The labels as the API server wrote them.
    pub(crate) fn labels(&self) -> Option<&str> {
        self.labels.map(RawValue::get)
    }

    /// The annotations as the API server wrote them.
    pub(crate) fn annotations(&self) -> Option<&str> {
        self.annotations.map(RawValue::get)
    }

    /// The value of an annotation.
    pub(crate) fn annotation(&self, name: &str) -> Option<String> {
        let mut annotations: BTreeMap<String, String> = serde_json::from_str(self.annotations?.get()).ok()?;
        annotations.remove(name)
    }

    /// When its deletion was asked for, or when its grace period ends, as the API server wrote it.
    pub(crate) fn deletion_time(&self) -> Option<&str> {
        self.deletion_timestamp.map(|time| time.get().trim_matches('"'))
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Stays the same until something changes that an author can apply.
    ///
    /// Where the kind counts generations, a change of status alone goes unnoticed; elsewhere any change counts.
    pub(crate) fn fingerprint(&self, kind: &Kind) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.uid.hash(&mut hasher);
        if self.generation == 0 || !kind.counts_generations() {
            self.resource_version.hash(&mut hasher);
        } else {
            let raw = |value: Option<&RawValue>| value.map(|value| value.get().to_owned());
            (self.generation, self.is_terminating(), &self.finalizers).hash(&mut hasher);
            (&self.owner_references, raw(self.labels), raw(self.annotations)).hash(&mut hasher);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(metadata: &str, rest: &str) -> Object {
        Object::parse(format!(r#"{{"kind":"Thing","metadata":{metadata}{rest}}}"#)).unwrap()
    }

    #[test]
    fn only_what_the_framework_needs_is_read() {
        let object = object(
            r#"{"name":"a\u0064a","namespace":"default","uid":"u1","resourceVersion":"7","managedFields":[{}],
            "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u0","controller":true}]}"#,
            r#","spec":{"a":1}"#,
        );
        assert_eq!((object.key.to_string().as_str(), object.version), ("default/ada", 7));
        assert_eq!(object.controller().unwrap().uid, "u0");
        assert_eq!(object.field("spec"), Some(serde_json::json!({"a": 1})));
        let partial = object.into_metadata();
        assert_eq!((partial.field("spec"), &*partial.json().meta().name), (None, "ada"));
        assert!(partial.metadata().metadata.managed_fields.is_none());
    }

    #[test]
    fn only_what_the_operator_applied_is_kept_of_who_manages_which_field() {
        let entry = |manager: &str, operation: &str, subresource: &str, field: &str| {
            let fields = json!({ field: {} });
            json!({ "manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields })
        };
        let managed = json!([
            entry("greeter", "Apply", "", "f:spec"),
            entry("greeter", "Apply", "status", "f:status"),
            entry("greeter", "Update", "", "f:metadata"),
            entry("greeter/7", "Apply", "", "f:shared"),
            entry("greeters", "Apply", "", "f:other"),
        ]);
        let metadata = json!({ "name": "ada", "managedFields": managed }).to_string();
        let object = object(&metadata, r#","spec":{"a":1}"#).managed_by("greeter");
        assert!(!object.json().contains("managedFields"));
        assert_eq!(object.field("metadata"), Some(json!({ "name": "ada" })));
        assert_eq!(object.applied_fields("greeter", ""), Some(json!({ "f:spec": {} })));
        assert_eq!(object.applied_fields("greeter", "status"), Some(json!({ "f:status": {} })));
        assert_eq!(object.applied_fields("greeter/7", ""), Some(json!({ "f:shared": {} })));
        assert_eq!(object.applied_fields("greeters", ""), None);
        let template = Arc::new(Template::new(&object.text()).unwrap());
        let packed = object.into_metadata().packed(&template);
        assert_eq!((packed.field("spec"), packed.field("metadata")), (None, Some(json!({ "name": "ada" }))));
        assert_eq!(packed.applied_fields("greeter", ""), Some(json!({ "f:spec": {} })));
    }

    #[test]
    fn a_change_of_status_leaves_no_fingerprint_where_generations_are_counted() {
        let kind = Kind::of::<k8s_openapi::api::apps::v1::Deployment>();
        let print = |object: Object| object.json().meta().fingerprint(&kind);
        let counted = |version| object(&format!(r#"{{"name":"a","generation":2,"resourceVersion":"{version}"}}"#), "");
        assert_eq!(print(counted(1)), print(counted(2)));
        let uncounted = |version| object(&format!(r#"{{"name":"a","resourceVersion":"{version}"}}"#), "");
        assert_ne!(print(uncounted(1)), print(uncounted(2)));
    }
}
