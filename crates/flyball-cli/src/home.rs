//! Where a cluster keeps its files when nobody says where.

use crate::failure::Failure;
use std::{
    env,
    path::{Path, PathBuf},
};

/// `$XDG_DATA_HOME/flyball`, else `~/.local/share/flyball`.
pub fn data() -> Result<PathBuf, Failure> {
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(base.ok_or(Failure::NoHome)?.join("flyball"))
}

/// A file beside nobody else's, for a cluster that keeps nothing: one a port.
pub fn temporary_kubeconfig(port: u16) -> PathBuf {
    env::temp_dir().join(format!("flyball-{port}.kubeconfig"))
}

/// The path as a user would type it: `~` for the home directory, quoted if a shell would split it.
pub fn show(path: &Path) -> String {
    let text = path.display().to_string();
    if text.chars().all(|c| c.is_alphanumeric() || "/._-~+".contains(c)) {
        text
    } else {
        format!("'{text}'")
    }
}

/// A variable that names a directory; the XDG specification has relative ones ignored.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
