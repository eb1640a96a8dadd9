//! Reads Kubernetes' published specification in the Go module cache, at the version that `conformance/reference` pins.

use super::enums::Enums;
use super::proto::Package;
use super::{Documents, GenerateError, Result, Served};
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
#[derive(Debug, Default)]
pub(super) struct Sources {
    version: String,
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
            .map_err(|_| GenerateError::NoGo)?;
        if output.stdout.is_empty() {
            return Err(GenerateError::Fetch(String::from_utf8_lossy(&output.stderr).trim().to_string()));
        }
        Sources::of_modules(&output.stdout)
    }

    /// Reads what `go mod download -json` prints: one object for each module.
    fn of_modules(printed: &[u8]) -> Result<Sources> {
        let mut sources = Sources::default();
        for module in serde_json::Deserializer::from_slice(printed).into_iter::<Value>() {
            let module = module.map_err(|error| GenerateError::Fetch(error.to_string()))?;
            let text = |key: &str| module[key].as_str().unwrap_or_default();
            if let Some(error) = module["Error"].as_str() {
                return Err(GenerateError::Fetch(error.to_string()));
            }
            if text("Path") == KUBERNETES {
                sources.version = text("Version").to_string();
                sources.kubernetes = text("Dir").into();
            } else {
                sources.with_proto.push(text("Dir").into());
            }
        }
        Ok(sources)
    }

    /// The documents of what a kube-apiserver without flags serves: the stable versions, and only those.
    pub(super) fn documents(&self) -> Result<Documents> {
        let mut api_versions = vec!["v1".to_string()];
        let groups = json(&self.kubernetes.join("api/discovery/aggregated_v2.json"))?;
        for group in groups["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            let versions = group["versions"].as_array().into_iter().flatten();
            let stable = versions.filter_map(|version| version["version"].as_str()).filter(|it| is_stable(it));
            api_versions.extend(stable.map(|version| format!("{name}/{version}")));
        }
        let enums = Enums::read(&text(&self.kubernetes.join("pkg/generated/openapi/zz_generated.openapi.go"))?)?;
        let served = api_versions.into_iter().map(|api_version| self.served(api_version, &enums));
        Ok(Documents {
            version: self.version.clone(),
            served: served.collect::<Result<_>>()?,
        })
    }

    fn served(&self, api_version: String, enums: &Enums) -> Result<Served> {
        let name = match api_version.split_once('/') {
            None => format!("api__{api_version}"),
            Some((group, version)) => format!("apis__{group}__{version}"),
        };
        let resource_list = json(&self.kubernetes.join(format!("api/discovery/{name}.json")))?;
        let mut openapi = json(&self.kubernetes.join(format!("api/openapi-spec/v3/{name}_openapi.json")))?;
        enums.add_to(&mut openapi);
        Ok(Served { api_version, resource_list, openapi })
    }

    /// Every `generated.proto`, with the Go that it was generated from.
    pub(super) fn packages(&self) -> Result<Vec<Package>> {
        let mut found = Vec::new();
        for directory in &self.with_proto {
            packages_below(directory, &mut found)?;
        }
        Ok(found)
    }
}

fn packages_below(directory: &Path, found: &mut Vec<Package>) -> Result<()> {
    let failed = |source| GenerateError::Read { path: directory.into(), source };
    let mut package = Package::default();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            packages_below(&path, found)?;
        } else if name == "generated.proto" {
            package.proto = text(&path)?;
        } else if name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated") {
            package.go.push(text(&path)?);
        }
    }
    found.extend(Some(package).filter(|package| !package.proto.is_empty()));
    Ok(())
}

/// `v1` and `v2`, but not `v1beta1`. KEP-3136: new beta APIs are off by default; alphas always were.
fn is_stable(version: &str) -> bool {
    version
        .strip_prefix('v')
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| GenerateError::Read { path: path.into(), source })
}

fn json(path: &Path) -> Result<Value> {
    serde_json::from_str(&text(path)?).map_err(|source| GenerateError::Parse { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_without_alpha_or_beta_are_stable() {
        assert!(is_stable("v1") && is_stable("v2"));
        assert!(!is_stable("v1beta1") && !is_stable("v1alpha3") && !is_stable("beta"));
    }

    #[test]
    fn a_module_that_go_cannot_fetch_is_one_sentence() {
        let printed = r#"{ "Path": "k8s.io/api", "Error": "k8s.io/api: no such host" }"#;
        assert_eq!(
            Sources::of_modules(printed.as_bytes()).unwrap_err().to_string(),
            "Go cannot fetch Kubernetes' specification, see that its module proxy can be reached and try again: \
             k8s.io/api: no such host"
        );
    }
}
