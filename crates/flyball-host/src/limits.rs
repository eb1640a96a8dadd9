//! The limit on open files: raised at the start, and divided between connections and files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that is assumed where the system has none.
const UNLIMITED: u64 = 1_048_576;

/// Raises the soft limit on open files to the hard limit and returns the limit that holds now.
///
/// Most shells and service managers start a process with a soft limit of 1,024, for programs that use `select`.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on open files was not raised");
    }
    open_files()
}

/// The soft limit on open files.
pub fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED)
}

/// The number of connections that may use one part in `parts` of the open files. The rest is for other ports and for files.
pub fn connections(parts: u64) -> usize {
    usize::try_from((open_files() / parts).max(1)).unwrap_or(usize::MAX)
}
