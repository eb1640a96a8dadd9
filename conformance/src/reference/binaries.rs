//! Where the control plane's programs are: `KUBEBUILDER_ASSETS`, or built once into the user's cache.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Error, build};

/// The programs of one control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The store.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The controllers.
    pub kube_controller_manager: PathBuf,
    /// The command line client.
    pub kubectl: PathBuf,
}

impl Binaries {
    /// The programs in `KUBEBUILDER_ASSETS` where it is set, else those in the cache, built now if they are not there.
    pub fn find_or_build() -> Result<Self, Error> {
        match env::var_os("KUBEBUILDER_ASSETS") {
            Some(directory) if !directory.is_empty() => Self::in_assets(Path::new(&directory)),
            _ => Ok(Self::in_directory(&build::built(&cache_directory("reference")?)?)),
        }
    }

    /// The programs in an envtest directory, which need not have kube-controller-manager.
    fn in_assets(directory: &Path) -> Result<Self, Error> {
        for name in ["etcd", "kube-apiserver"] {
            if !is_executable(&directory.join(name)) {
                return Err(Error::MissingBinary { name, directory: directory.to_owned() });
            }
        }
        Ok(Self::in_directory(directory))
    }

    fn in_directory(directory: &Path) -> Self {
        Self {
            etcd: directory.join("etcd"),
            kube_apiserver: directory.join("kube-apiserver"),
            kube_controller_manager: directory.join("kube-controller-manager"),
            kubectl: directory.join("kubectl"),
        }
    }

    /// Fails by name if kube-controller-manager is not among them.
    pub(super) fn require_controllers(&self) -> Result<(), Error> {
        if is_executable(&self.kube_controller_manager) {
            return Ok(());
        }
        let directory = self.kube_controller_manager.parent().unwrap_or(Path::new("/")).to_owned();
        Err(Error::MissingBinary { name: "kube-controller-manager", directory })
    }
}

/// Where what is built once and kept is kept, by what it is.
pub fn cache_directory(name: &str) -> Result<PathBuf, Error> {
    let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    set("XDG_CACHE_HOME")
        .or_else(home)
        .map(|cache| cache.join("flyball").join(name))
        .ok_or(Error::NoCacheDirectory)
}

/// Whether `path` is a file that may be run.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_is_named_with_its_directory() {
        let assets = tempfile::tempdir().unwrap();
        std::fs::write(assets.path().join("etcd"), "").unwrap();
        std::fs::set_permissions(assets.path().join("etcd"), PermissionsExt::from_mode(0o755)).unwrap();

        let error = Binaries::in_assets(assets.path()).unwrap_err();

        let expected = format!(
            "KUBEBUILDER_ASSETS is {}, which has no executable kube-apiserver: \
             put it there, or unset the variable to have it built",
            assets.path().display()
        );
        assert_eq!(error.to_string(), expected);
    }
}
