//! Writes the table of built-in kinds that `flyball_schema::kinds` reads, from Kubernetes' own published specification:
//! OpenAPI v3 and discovery for what is served, `generated.proto` and the Go it comes from for protobuf, generated Go for enums. No prose goes in.

mod discovery;
mod enums;
mod live;
mod proto;
mod sources;
mod spec;
mod synthesis;

use flyball_schema::kinds::{self, Kinds};
use serde_json::Value;
use sources::Sources;
use std::path::{Path, PathBuf};

/// Bodies and options that no resource refers to, but requests, responses and webhooks carry. Table is not among them:
/// a server writes it and reads none, and no specification has its type.
const BESIDES: [&str; 24] = [
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
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList",
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions",
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
    /// There is no Go to fetch the specification with.
    #[error("there is no `go` on the PATH: install Go 1.26 or newer and try again")]
    NoGo,
    /// Go did not hand out Kubernetes' modules.
    #[error("Go cannot fetch Kubernetes' specification, see that its module proxy can be reached and try again: {0}")]
    Fetch(String),
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
    /// The running server does not answer.
    #[error("ask the reference for {path}")]
    Ask {
        /// The document's path.
        path: String,
        /// Why.
        source: Box<kube::Error>,
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

/// What is served, in Kubernetes' own documents.
struct Documents {
    /// The version of Kubernetes, such as `v1.36.4`.
    version: String,
    /// The served versions: the core group first, then discovery's own order.
    served: Vec<Served>,
}

/// The documents of one group and version.
struct Served {
    /// `v1`, or `apps/v1`.
    api_version: String,
    /// Its `APIResourceList`.
    resource_list: Value,
    /// Its OpenAPI v3 document.
    openapi: Value,
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

/// Makes the table from the published specification: the same bytes for the same version of Kubernetes.
pub fn generate() -> Result<String> {
    let sources = Sources::find()?;
    table(&sources.documents()?, &sources)
}

/// Makes the table from what a running kube-apiserver says of itself: the same bytes again, if it serves what we think.
/// Protobuf numbers still come from the published specification, for no server tells them.
pub async fn of_server(client: &kube::Client) -> Result<String> {
    table(&live::documents(client).await?, &Sources::find()?)
}

fn table(documents: &Documents, sources: &Sources) -> Result<String> {
    let messages = proto::Messages::read(&sources.packages()?)?;
    let definitions = spec::Definitions::read(documents);
    let mut body = String::new();
    let mut roots: Vec<String> = BESIDES.iter().map(ToString::to_string).collect();
    for served in &documents.served {
        discovery::write(served, &definitions, &mut roots, &mut body)?;
    }
    body += &spec::Writer::new(&definitions, &messages).write(roots)?;
    let table = format!("{} {} {:016x}\n{body}", kinds::FORMAT, documents.version, kinds::checksum(&body));
    Kinds::read(&table)?;
    Ok(table)
}
