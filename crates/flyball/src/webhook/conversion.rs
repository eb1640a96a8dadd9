//! Conversion between the versions of a kind: functions between neighbours, and what a version cannot express kept in an
//! annotation, so that a round trip loses nothing.

mod kept;
pub(crate) mod review;

use crate::webhook::patch::without_nulls;
use crate::{Error, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource, core::crd::merge_crds};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{fmt, marker::PhantomData, sync::Arc};

/// What the annotation of a version's fields is called, before the version.
const ANNOTATION: &str = "conversion.flyball.dev/";

/// The versions of a kind, from the oldest to the newest, and how to get from one to its neighbour;
/// [`Operator::converts`](crate::Operator::converts) takes it and brings the kind along.
///
/// A function is given an object of one version and returns it in the other. Metadata is carried over whatever it does. A field
/// that only one of the versions has is kept in an annotation of the other (`conversion.flyball.dev/<version>`) and put back
/// on the way back, unless what it belongs to was changed meanwhile.
///
/// ```
/// # use flyball::{Conversion, Operator, Result};
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// mod v1 {
///     # use super::*;
///     #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
///     #[kube(group = "example.dev", version = "v1", kind = "Disk", namespaced)]
///     pub struct DiskSpec {
///         pub gigabytes: i64,
///     }
/// }
/// mod v2 {
///     # use super::*;
///     #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
///     #[kube(group = "example.dev", version = "v2", kind = "Disk", namespaced)]
///     pub struct DiskSpec {
///         pub megabytes: i64,
///     }
/// }
///
/// fn up(disk: v1::Disk) -> Result<v2::Disk> {
///     let megabytes = disk.spec.gigabytes.saturating_mul(1024);
///     Ok(v2::Disk { metadata: disk.metadata, spec: v2::DiskSpec { megabytes } })
/// }
///
/// fn down(disk: v2::Disk) -> Result<v1::Disk> {
///     let gigabytes = disk.spec.megabytes / 1024;
///     Ok(v1::Disk { metadata: disk.metadata, spec: v1::DiskSpec { gigabytes } })
/// }
///
/// # fn main() {
/// let operator = Operator::new("disks").converts(Conversion::of::<v1::Disk>().then::<v2::Disk>(up, down));
/// # }
/// ```
#[must_use = "a conversion does nothing before an operator has it"]
pub struct Conversion<K> {
    pub(crate) spec: ConversionSpec,
    last: PhantomData<fn(K)>,
}

/// The versions of a kind with their types erased.
#[derive(Clone)]
pub(crate) struct ConversionSpec {
    pub(crate) group: String,
    pub(crate) kind: String,
    versions: Vec<Version>,
    /// From each version to the next, and back.
    steps: Vec<(Step, Step)>,
    stored: Option<String>,
    unserved: Vec<String>,
    pub(crate) mistakes: Vec<String>,
}

#[derive(Clone)]
struct Version {
    name: String,
    crd: CustomResourceDefinition,
}

type Step = Arc<dyn Fn(&Value) -> Result<Value> + Send + Sync>;

impl Conversion<()> {
    /// Begins with the oldest version.
    pub fn of<K>() -> Conversion<K>
    where
        K: Resource<DynamicType = ()> + CustomResourceExt,
    {
        let spec = ConversionSpec {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            versions: vec![Version::of::<K>()],
            steps: Vec::new(),
            stored: None,
            unserved: Vec::new(),
            mistakes: Vec::new(),
        };
        Conversion { spec, last: PhantomData }
    }
}

impl<K> Conversion<K>
where
    K: Resource<DynamicType = ()> + CustomResourceExt + Serialize + DeserializeOwned + 'static,
{
    /// Adds the next version, with the functions to it and back.
    pub fn then<N>(
        mut self,
        up: impl Fn(K) -> Result<N> + Send + Sync + 'static,
        down: impl Fn(N) -> Result<K> + Send + Sync + 'static,
    ) -> Conversion<N>
    where
        N: Resource<DynamicType = ()> + CustomResourceExt + Serialize + DeserializeOwned + 'static,
    {
        let next = Version::of::<N>();
        let is_same = N::group(&()) == self.spec.group.as_str() && N::kind(&()) == self.spec.kind.as_str();
        let taken = self.spec.versions.iter().any(|version| version.name == next.name);
        if !is_same || taken {
            let mistake = format!(
                "{} {} of {:?} cannot follow: a conversion is between different versions of one kind",
                N::kind(&()),
                next.name,
                N::group(&())
            );
            self.spec.mistakes.push(mistake);
        }
        self.spec.versions.push(next);
        self.spec.steps.push((step(up), step(down)));
        Conversion { spec: self.spec, last: PhantomData }
    }
}

impl<K> Conversion<K> {
    /// Stores objects in this version; in the newest unless set. Objects that were stored in another one are rewritten by the
    /// command `migrate-storage`.
    pub fn stored(mut self, version: impl Into<String>) -> Conversion<K> {
        self.spec.stored = Some(version.into());
        self
    }

    /// Serves no requests in this version any more; objects that are stored in it are still read.
    pub fn unserved(mut self, version: impl Into<String>) -> Conversion<K> {
        self.spec.unserved.push(version.into());
        self
    }
}

impl<K> fmt::Debug for Conversion<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

impl fmt::Debug for ConversionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<_> = self.versions.iter().map(|version| &version.name).collect();
        write!(f, "Conversion of {}.{} {versions:?}", self.kind, self.group)
    }
}

impl Version {
    fn of<K: Resource<DynamicType = ()> + CustomResourceExt>() -> Version {
        Version { name: K::version(&()).into_owned(), crd: K::crd() }
    }
}

/// Erases the types of a function between two versions.
fn step<A: DeserializeOwned, B: Serialize>(convert: impl Fn(A) -> Result<B> + Send + Sync + 'static) -> Step {
    Arc::new(move |object| {
        let converted = convert(A::deserialize(object)?)?;
        Ok(without_nulls(&serde_json::to_value(converted)?))
    })
}

impl ConversionSpec {
    pub(crate) fn is_of(&self, crd: &CustomResourceDefinition) -> bool {
        crd.spec.group == self.group && crd.spec.names.kind == self.kind
    }

    /// The definition of the kind with all of its versions; its conversion is not said yet.
    pub(crate) fn crd(&self) -> Result<CustomResourceDefinition, String> {
        let newest = &self.versions.last().expect("there is a first version").name;
        let stored = self.stored.as_ref().unwrap_or(newest);
        let crds = self.versions.iter().map(|version| version.crd.clone()).collect();
        let mut crd = merge_crds(crds, stored).map_err(|error| format!("the versions of {}: {error}", self.kind))?;
        for version in &mut crd.spec.versions {
            version.served = !self.unserved.contains(&version.name);
        }
        let known = |name: &String| crd.spec.versions.iter().any(|version| version.name == *name);
        match self.unserved.iter().find(|name| !known(name)) {
            Some(unknown) => Err(format!("{} has no version {unknown}", self.kind)),
            None => Ok(crd),
        }
    }

    /// An object in another version of its kind.
    pub(crate) fn convert(&self, object: &Value, to: &str) -> Result<Value> {
        let from = self.position(object["apiVersion"].as_str().unwrap_or_default())?;
        let to = self.position(to)?;
        let mut object = object.clone();
        for at in from..to {
            let (up, down) = &self.steps[at];
            object = self.converted(&object, at, at + 1, up, down)?;
        }
        for at in (to..from).rev() {
            let (up, down) = &self.steps[at];
            object = self.converted(&object, at + 1, at, down, up)?;
        }
        Ok(object)
    }

    fn position(&self, api_version: &str) -> Result<usize> {
        let position = api_version
            .split_once('/')
            .filter(|(group, _)| *group == self.group)
            .and_then(|(_, version)| self.versions.iter().position(|known| known.name == version));
        position.ok_or_else(|| Error::permanent(format!("{} has no version {api_version:?}", self.kind)))
    }

    /// One step: converts, puts back what the target version had before, and keeps what it cannot express.
    fn converted(&self, object: &Value, from: usize, to: usize, convert: &Step, back: &Step) -> Result<Value> {
        let [from, to] = [from, to].map(|at| &*self.versions[at].name);
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let mut target = self.framed(convert(object)?, to, metadata);
        if let Some(kept) = take_annotation(&mut target, to) {
            kept::restore(&mut target, &kept);
        }
        let returned = back(&target)?;
        let lost = kept::lost(&content(&returned), &content(object));
        if !lost.is_empty() {
            set_annotation(&mut target, from, kept::to_text(&lost));
        }
        Ok(target)
    }

    /// The content of an object with the version and metadata that it is to have.
    fn framed(&self, object: Value, version: &str, metadata: Value) -> Value {
        let mut framed = content(&object);
        framed["apiVersion"] = format!("{}/{version}", self.group).into();
        framed["kind"] = self.kind.clone().into();
        if !metadata.is_null() {
            framed["metadata"] = metadata;
        }
        framed
    }
}

/// What a version decides: everything but the type and the metadata.
fn content(object: &Value) -> Value {
    let fields = object.as_object().cloned().unwrap_or_default();
    let decided = |name: &String| !["apiVersion", "kind", "metadata"].contains(&name.as_str());
    Value::Object(fields.into_iter().filter(|(name, _)| decided(name)).collect())
}

fn take_annotation(object: &mut Value, version: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let taken = annotations.remove(&format!("{ANNOTATION}{version}"))?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken.as_str().map(str::to_owned)
}

fn set_annotation(object: &mut Value, version: &str, text: String) {
    let metadata = as_object(&mut object["metadata"]);
    as_object(&mut metadata["annotations"])[format!("{ANNOTATION}{version}")] = text.into();
}

/// A value that fields can be added to.
fn as_object(value: &mut Value) -> &mut Value {
    if !value.is_object() {
        *value = Map::new().into();
    }
    value
}
