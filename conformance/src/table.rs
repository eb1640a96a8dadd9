//! Writes the table of built-in kinds that `flyball_schema::kinds` reads, from Kubernetes' own published specification:
//! OpenAPI v3 and discovery for what is served, `generated.proto` for protobuf, generated Go for enums. No prose goes in.

mod discovery;
mod enums;
mod proto;
mod sources;
mod spec;
mod synthesis;

use flyball_schema::kinds::{self, Kinds};
use sources::Sources;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Bodies and options that no resource refers to, but requests, responses and webhooks carry.
const BESIDES: [&str; 21] = [
    "io.k8s.api.admission.v1.AdmissionReview",
    "io.k8s.api.apidiscovery.v2.APIGroupDiscovery",
    "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
    "io.k8s.api.core.v1.NodeProxyOptions",
    "io.k8s.api.core.v1.PodAttachOptions",
    "io.k8s.api.core.v1.PodExecOptions",
    "io.k8s.api.core.v1.PodLogOptions",
    "io.k8s.api.core.v1.PodPortForwardOptions",
    "io.k8s.api.core.v1.PodProxyOptions",
    "io.k8s.api.core.v1.ServiceProxyOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.CreateOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.GetOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PatchOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.UpdateOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
];

/// Why the table cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// Go did not hand out Kubernetes' modules.
    #[error("go mod download of Kubernetes' specification failed, install Go 1.26 or newer and try again: {0}")]
    Go(String),
    /// A file of the specification cannot be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the specification is no JSON.
    #[error("parse {path}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The specification says something that the generator has no rule for.
    #[error("the specification has something new, teach the generator about it: {0}")]
    Unexpected(String),
    /// The table was written, and its reader refuses it.
    #[error("the table just written cannot be read back")]
    ReadBack(#[from] kinds::ReadError),
    /// The table cannot be put into its place.
    #[error("write {path}")]
    Write {
        /// The table's file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

type Result<T, E = GenerateError> = std::result::Result<T, E>;

/// Where the table is kept.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/flyball-schema/data/kinds.txt")
}

/// Writes the table into its place, and says where that is.
pub fn write() -> Result<PathBuf> {
    let path = path();
    std::fs::write(&path, generate()?).map_err(|source| GenerateError::Write { path: path.clone(), source })?;
    Ok(path)
}

/// Makes the table: the same bytes for the same version of Kubernetes.
pub fn generate() -> Result<String> {
    let sources = Sources::find()?;
    let served = discovery::served(&sources)?;
    let messages = proto::Messages::read(&sources)?;
    let enums = enums::Enums::read(&sources)?;
    let definitions = spec::Definitions::read(&sources, &served)?;

    let mut body = String::new();
    let mut roots: Vec<String> = BESIDES.iter().map(ToString::to_string).collect();
    for version in &served {
        version.write(&definitions, &mut roots, &mut body)?;
    }
    body += &spec::Writer::new(&definitions, &messages, &enums).write(roots)?;

    let mut table = String::new();
    let sum = kinds::checksum(&body);
    writeln!(table, "{} {} {sum:016x}", kinds::FORMAT, sources.version).expect("a string takes any text");
    table += &body;
    Kinds::read(&table)?;
    Ok(table)
}
