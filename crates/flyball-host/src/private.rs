//! Files and directories that only their owner can use, written so that a reader never sees half of a file.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// Takes the rights of group and others from every file that this process creates from now on.
pub fn restrict_new_files() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Writes a file of mode 0600: beside its place, synced, then renamed over what is there, a symbolic link included.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let beside = path.with_file_name(beside);
    // `create_new` is O_EXCL: it neither opens nor follows what another user put there.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE).open(&beside)?;
    let written = fill(&mut file, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        std::fs::remove_file(&beside).ok();
    }
    written
}

/// Opens a file for appending; a new one is readable by its owner only.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(FILE).open(path)
}

fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Creates a directory of mode 0700, and its parents, or takes the rights of group and others from one that exists.
pub fn directory(path: &Path) -> io::Result<()> {
    create_directory(path)?;
    if std::fs::metadata(path)?.mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY))
}

/// Creates a directory of mode 0700, and its parents, unless it exists.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

/// Creates a directory of mode 0700 where other users can create files too, and refuses one that is not this user's own.
pub fn own_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(DIRECTORY).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = std::fs::symlink_metadata(path)?;
    let own = metadata.is_dir() && metadata.uid() == user() && metadata.mode() & 0o077 == 0;
    let reason = "expected a directory of mode 0700 that belongs to this user";
    own.then_some(()).ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// The effective user id of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let (file, target) = (directory.path().join("file"), directory.path().join("target"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        let mut reader = File::open(&file).unwrap();

        write(&file, b"new").unwrap();

        assert_eq!(io::read_to_string(&mut reader).unwrap(), "old", "an open file is not touched");
        assert_eq!((std::fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("new", 0o600));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&target, "of another user").unwrap();
        symlink(&target, &file).unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "of another user");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn directories_are_private() {
        let place = tempfile::tempdir().unwrap();
        let (deep, open) = (place.path().join("a/b"), place.path().join("open"));
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();

        assert!(own_directory(&open).is_err(), "others may have put files there");
        directory(&deep).unwrap();
        directory(&open).unwrap();

        assert_eq!((mode(&deep), mode(&open)), (0o700, 0o700));
        own_directory(&open).unwrap();
        symlink(&deep, place.path().join("link")).unwrap();
        assert!(own_directory(&place.path().join("link")).is_err());
    }
}
