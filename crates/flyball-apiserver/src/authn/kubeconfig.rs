//! The kubeconfig: the address of the server and the credentials of a client.

use crate::authn::identity::{Authority, AuthorityError, User};
use crate::encoding::yaml;
use base64::prelude::{BASE64_STANDARD, Engine};
use flyball_host::private;
use serde_json::json;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const MARK: &str = "# Written by flyball.\n";

/// Why a kubeconfig was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file exists and another program wrote it.
    #[error("{} was not written by flyball: choose another file", path.display())]
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
    /// The client certificate could not be created.
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

/// Writes the admin's kubeconfig with mode 0600. A file that flyball did not write is not replaced.
pub fn write(path: &Path, authority: &Authority, server: &str) -> Result<(), WriteError> {
    let failed = |source| WriteError::Write { path: path.to_owned(), source };
    if !is_replaceable(path).map_err(failed)? {
        return Err(WriteError::NotOurs { path: path.to_owned() });
    }
    let text = kubeconfig(authority, server, &User::admin())?;
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        private::create_directory(directory).map_err(failed)?;
    }
    private::write(path, text.as_bytes()).map_err(failed)
}

/// Whether a path is free, or has a file that is empty or that flyball wrote.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    // Opening anything but a file, such as a named pipe, could block.
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    }
    let mut start = Vec::new();
    std::fs::File::open(path)?.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(start.is_empty() || start == MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_kubeconfig_of_another_program_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, theirs) = (directory.path().join("sub/ours"), directory.path().join("theirs"));
        std::fs::write(&theirs, "apiVersion: v1\nkind: Config\n").unwrap();
        let authority = Authority::generate().unwrap();

        write(&ours, &authority, "https://127.0.0.1:1").unwrap();
        write(&ours, &authority, "https://127.0.0.1:2").unwrap();
        let error = write(&theirs, &authority, "https://127.0.0.1:3").unwrap_err();

        assert!(std::fs::read_to_string(&ours).unwrap().contains("server: https://127.0.0.1:2"));
        assert!(error.to_string().ends_with("theirs was not written by flyball: choose another file"));
    }

    #[tokio::test]
    async fn an_existing_kubeconfig_becomes_private_and_a_reader_never_sees_half_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let authority = Authority::generate().unwrap();
        write(&path, &authority, "https://127.0.0.1:1").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let (old, mut reader) = (std::fs::read_to_string(&path).unwrap(), std::fs::File::open(&path).unwrap());

        write(&path, &authority, "https://127.0.0.1:2").unwrap();

        assert_eq!(io::read_to_string(&mut reader).unwrap(), old);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
