//! The file that tells kubectl and every other client where the server is, and who they are.

use crate::authn::identity::{Authority, AuthorityError, User};
use crate::encoding::yaml;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MARK: &str = "# Written by flyball.\n";

/// Why a kubeconfig was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Somebody else's file is there.
    #[error("{} was not written by flyball and is left alone: name another file", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no certificate for it.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A kubeconfig for a user of the server at that address, such as `https://127.0.0.1:6443`.
pub fn kubeconfig(authority: &Authority, server: &str, user: &User) -> Result<String, AuthorityError> {
    let credential = authority.client(user)?;
    let cluster =
        json!({"server": server, "certificate-authority-data": BASE64_STANDARD.encode(authority.certificate())});
    let client = json!({
        "client-certificate-data": BASE64_STANDARD.encode(credential.certificate),
        "client-key-data": BASE64_STANDARD.encode(credential.key)
    });
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "flyball", "cluster": cluster}],
        "users": [{"name": user.name, "user": client}],
        "contexts": [{"name": "flyball", "context": {"cluster": "flyball", "user": user.name}}],
        "current-context": "flyball"
    });
    Ok(format!("{MARK}{}", yaml::write(&config)))
}

/// Writes the admin's kubeconfig, over one of ours but never over somebody else's.
pub fn write(path: &Path, authority: &Authority, server: &str) -> Result<(), WriteError> {
    let failed = |source| WriteError::Write { path: path.to_owned(), source };
    match std::fs::read_to_string(path) {
        Ok(text) if !text.is_empty() && !text.starts_with(MARK) => {
            return Err(WriteError::NotOurs { path: path.to_owned() });
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let text = kubeconfig(authority, server, &User::admin())?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    write_private(path, &text).map_err(failed)
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn somebody_elses_kubeconfig_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, theirs) = (directory.path().join("sub/ours"), directory.path().join("theirs"));
        std::fs::write(&theirs, "apiVersion: v1\nkind: Config\n").unwrap();
        let authority = Authority::generate().unwrap();

        write(&ours, &authority, "https://127.0.0.1:1").unwrap();
        write(&ours, &authority, "https://127.0.0.1:2").unwrap();
        let error = write(&theirs, &authority, "https://127.0.0.1:3").unwrap_err();

        assert!(std::fs::read_to_string(&ours).unwrap().contains("server: https://127.0.0.1:2"));
        assert!(
            error
                .to_string()
                .ends_with("theirs was not written by flyball and is left alone: name another file")
        );
    }
}
