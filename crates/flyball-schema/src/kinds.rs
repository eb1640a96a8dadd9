//! The table of built-in kinds: what a Kubernetes API server serves, and the type of each field.
//! The table is data, written by `cargo run -p conformance -- table`; its lines are read in `kinds::read`.

mod expression;
mod read;
mod served;

use crate::resource::Resource;
use crate::schema::{Node, SchemaId, Schemas};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const DISCOVERY: &str = "io.k8s.api.apidiscovery.v2";

/// The format that this reader knows and the generator writes.
pub const FORMAT: &str = "flyball-kinds 2";

/// The table that comes with this crate, as text.
///
/// ```text
/// flyball-kinds 2 v1.36.4 0123456789abcdef      format, version of Kubernetes, checksum of the rest
/// served v1
/// resource pods pod Pod namespaced create,get list=PodList short=po type=io.k8s.api.core.v1.Pod
/// subresource eviction policy/v1 Eviction create type=io.k8s.api.policy.v1.Eviction
/// package io.k8s.api.core.v1
/// object ContainerPort                          `atomic`: replaced as a whole; `free`: keeps any field
///  containerPort 3v ! =0 integer:int32          protobuf field 3, a varint; required; default; type and format
///  protocol 4s ="TCP" |"TCP" |"UDP" string      protobuf field 4, a string; default; allowed values; type
/// object PodSpec
///  activeDeadlineSeconds 5V integer:int64        a capital letter: Go has a pointer there
///  containers 2m ! ~merge:name list:name Container    patch strategy and merge key; list map keys; type of this package
/// ```
pub const TABLE: &str = include_str!("../data/kinds.txt");

/// What a Kubernetes API server serves by itself.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// The version of Kubernetes that the table was made from, such as `v1.36.4`.
    pub version: Box<str>,
    /// Every type that a served kind refers to, directly or not.
    pub schemas: Schemas,
    /// The served resources: by group, then version, in discovery's order.
    pub resources: Vec<Resource>,
    names: HashMap<Arc<str>, SchemaId>,
}

/// Why a table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The first line is not that of a table.
    #[error("this is not a table of kinds: write a new one with `cargo run -p conformance -- table`")]
    NotATable,
    /// Another format, older or newer.
    #[error(
        "the table of kinds has format `{found}` and this program reads `{FORMAT}`: \
         write it again with `cargo run -p conformance -- table`"
    )]
    Format {
        /// The format in its first line.
        found: Box<str>,
    },
    /// The lines are not those that were written.
    #[error("the table of kinds is damaged or cut short: write it again with `cargo run -p conformance -- table`")]
    Damaged,
    /// A line that the format does not allow.
    #[error("line {line} of the table of kinds has {problem}: write it again with `cargo run -p conformance -- table`")]
    Line {
        /// Which line, from one.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// The table that comes with this crate, read once.
pub fn builtin() -> &'static Kinds {
    static BUILTIN: LazyLock<Kinds> =
        LazyLock::new(|| Kinds::read(TABLE).expect("the committed table is read by a test"));
    &BUILTIN
}

/// The checksum in a table's first line: FNV-1a over everything below that line, eight bytes at a time.
pub fn checksum(body: &str) -> u64 {
    let (words, rest) = body.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).fold(0xcbf2_9ce4_8422_2325, |sum, word| {
        (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Kinds {
    /// Reads a table.
    pub fn read(text: &str) -> Result<Kinds, ReadError> {
        read::read(text)
    }

    /// The resource that a path names, such as `apps`, `v1`, `deployments`.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.resources
            .iter()
            .find(|it| &*it.plural == plural && &*it.group == group && &*it.version == version)
    }

    /// The resource whose objects are of a kind, such as `apps`, `v1`, `Deployment`.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Resource> {
        self.resources
            .iter()
            .find(|it| &*it.kind == kind && &*it.group == group && &*it.version == version)
    }

    /// The type of whatever has this `apiVersion` and `kind`: an object, a list, options, a status.
    pub fn type_of(&self, api_version: &str, kind: &str) -> Option<Node<'_>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let shares = |it: &&Resource| &*it.group == group && &*it.version == version;
        let beside = self.resources.iter().find(|it| shares(it) && it.schema.is_some());
        let package = beside.and_then(|it| self.schemas.node(it.schema?).type_name()?.rsplit_once('.'));
        let packages = [package.map(|(package, _)| package), Some(META), Some(DISCOVERY)];
        packages
            .into_iter()
            .flatten()
            .find_map(|package| self.schema(&format!("{package}.{kind}")))
    }

    /// The type of a name, such as `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
    pub fn schema(&self, name: &str) -> Option<Node<'_>> {
        self.schema_id(name).map(|id| self.schemas.node(id))
    }

    /// Where the type of a name is.
    pub fn schema_id(&self, name: &str) -> Option<SchemaId> {
        self.names.get(name).copied()
    }

    /// The names of all types, in no order.
    pub fn schema_names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name)
    }
}
