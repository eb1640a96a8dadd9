//! Finds Kubernetes' specification in the Go module cache, at the version that `conformance/reference` pins.

use super::{GenerateError, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const KUBERNETES: &str = "k8s.io/kubernetes";
const WITH_PROTO: [&str; 4] = [
    "k8s.io/api",
    "k8s.io/apimachinery",
    "k8s.io/apiextensions-apiserver",
    "k8s.io/kube-aggregator",
];

/// The directories of the modules that hold the specification.
pub(super) struct Sources {
    /// The version of Kubernetes, such as `v1.36.4`.
    pub(super) version: String,
    kubernetes: PathBuf,
    with_proto: Vec<PathBuf>,
}

impl Sources {
    /// Asks Go where the modules are; it fetches what is not there yet.
    pub(super) fn find() -> Result<Sources> {
        let output = Command::new("go")
            .args(["mod", "download", "-json", KUBERNETES])
            .args(WITH_PROTO)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/kubernetes"))
            .output()
            .map_err(|error| GenerateError::Go(error.to_string()))?;
        if !output.status.success() {
            return Err(GenerateError::Go(String::from_utf8_lossy(&output.stderr).trim().to_string()));
        }
        let mut sources = Sources {
            version: String::new(),
            kubernetes: PathBuf::new(),
            with_proto: Vec::new(),
        };
        for module in serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>() {
            let module = module.map_err(|error| GenerateError::Go(error.to_string()))?;
            let text = |key: &str| module[key].as_str().unwrap_or_default();
            if text("Path") == KUBERNETES {
                sources.version = text("Version").to_string();
                sources.kubernetes = text("Dir").into();
            } else {
                sources.with_proto.push(text("Dir").into());
            }
        }
        Ok(sources)
    }

    /// The OpenAPI v3 document of `v1` or `apps/v1`.
    pub(super) fn openapi(&self, api_version: &str) -> Result<Value> {
        json(
            &self
                .kubernetes
                .join(format!("api/openapi-spec/v3/{}_openapi.json", file_name(api_version))),
        )
    }

    /// The `APIResourceList` of `v1` or `apps/v1`.
    pub(super) fn resource_list(&self, api_version: &str) -> Result<Value> {
        json(&self.kubernetes.join(format!("api/discovery/{}.json", file_name(api_version))))
    }

    /// The `APIGroupDiscoveryList` of all groups but the core group, in order of priority.
    pub(super) fn group_list(&self) -> Result<Value> {
        json(&self.kubernetes.join("api/discovery/aggregated_v2.json"))
    }

    /// The Go source that Kubernetes makes its OpenAPI from.
    pub(super) fn openapi_source(&self) -> Result<String> {
        text(&self.kubernetes.join("pkg/generated/openapi/zz_generated.openapi.go"))
    }

    /// Every `generated.proto`.
    pub(super) fn protos(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for directory in &self.with_proto {
            protos_below(directory, &mut found)?;
        }
        Ok(found)
    }
}

fn protos_below(directory: &Path, found: &mut Vec<String>) -> Result<()> {
    let failed = |source| GenerateError::Read { path: directory.into(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            protos_below(&path, found)?;
        } else if path.ends_with("generated.proto") {
            found.push(text(&path)?);
        }
    }
    Ok(())
}

/// `api__v1` or `apis__apps__v1`.
fn file_name(api_version: &str) -> String {
    match api_version.split_once('/') {
        None => format!("api__{api_version}"),
        Some((group, version)) => format!("apis__{group}__{version}"),
    }
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| GenerateError::Read { path: path.into(), source })
}

fn json(path: &Path) -> Result<Value> {
    serde_json::from_str(&text(path)?).map_err(|source| GenerateError::Parse { path: path.into(), source })
}
