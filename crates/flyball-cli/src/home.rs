//! The default locations of a cluster's files.

use crate::failure::Failure;
use flyball_host::private;
use std::{
    env,
    path::{Path, PathBuf},
};

/// `$XDG_DATA_HOME/flyball`, else `~/.local/share/flyball`.
pub fn data() -> Result<PathBuf, Failure> {
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(base.ok_or(Failure::NoHome)?.join("flyball"))
}

/// Makes a data directory private: it holds the cluster's Secrets and its certificate authority.
///
/// A directory that exists and holds no cluster keeps its mode, since it may hold other files; a cluster's own
/// directories in it are private all the same.
pub fn prepare(data: &Path) -> Result<(), Failure> {
    let is_ours = !data.exists() || data.join("store").exists() || data.join("authority").exists();
    let prepared = match is_ours {
        true => private::directory(data),
        false => Ok(()),
    };
    let prepared = prepared.and_then(|()| match data.join("store") {
        store if store.is_dir() => private::directory(&store),
        _ => Ok(()),
    });
    prepared.map_err(|source| Failure::DataDirectory { path: data.to_owned(), source })
}

/// The kubeconfig of a cluster in memory, one per port, in a directory that other users cannot write to:
/// `$XDG_RUNTIME_DIR/flyball`, else `flyball-UID` in the directory for temporary files.
pub fn temporary_kubeconfig(port: u16) -> Result<PathBuf, Failure> {
    let directory = match absolute("XDG_RUNTIME_DIR") {
        Some(runtime) => runtime.join("flyball"),
        None => env::temp_dir().join(format!("flyball-{}", private::user())),
    };
    private::own_directory(&directory)
        .map_err(|source| Failure::TemporaryDirectory { path: directory.clone(), source })?;
    Ok(directory.join(format!("{port}.kubeconfig")))
}

/// The path as a user would type it: quoted if a shell would split it.
pub fn show(path: &Path) -> String {
    let text = path.display().to_string();
    if text.chars().all(|c| c.is_alphanumeric() || "/._-~+".contains(c)) {
        text
    } else {
        format!("'{text}'")
    }
}

/// A variable that names a directory; the XDG specification ignores relative paths.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
