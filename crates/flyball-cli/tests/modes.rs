//! The modes of the files that the commands write. A cluster takes a second to start.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Runs a command as if the user's umask kept nothing from other users.
fn flyball(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg("umask 0; exec \"$0\" \"$@\"").arg(env!("CARGO_BIN_EXE_flyball"));
    command.args(words).current_dir(directory).env("PORT", "0").env_remove("XDG_RUNTIME_DIR");
    command.env("TMPDIR", directory);
    command
}

/// A cluster that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts a cluster, and returns it with the path of its kubeconfig.
fn up(directory: &Path, words: &[&str]) -> (Running, PathBuf) {
    let words: Vec<&str> = ["up", "--port", "0"].iter().chain(words).copied().collect();
    let mut child = flyball(directory, &words).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let child = Running(child);
    let kubeconfig = lines.iter().find_map(|line| line.strip_prefix("kubeconfig  ")).unwrap();
    (child, directory.join(kubeconfig))
}

/// Every file and directory below a directory that other users have rights to.
fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(open_to_others(&path));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            found.push(path);
        }
    }
    found
}

#[test]
fn other_users_cannot_read_what_the_commands_write() {
    let place = tempfile::tempdir().unwrap();
    let kubeconfig = place.path().join("kubeconfig");
    fs::write(&kubeconfig, "").unwrap();
    fs::set_permissions(&kubeconfig, fs::Permissions::from_mode(0o666)).unwrap();

    let (running, written) = up(place.path(), &["--data", "one", "--kubeconfig", "kubeconfig"]);
    assert_eq!(written, kubeconfig);
    for words in [
        ["backup", "file", "--data", "one"],
        ["restore", "file", "--data", "two"],
    ] {
        assert!(flyball(place.path(), &words).status().unwrap().success(), "{words:?}");
    }

    assert_eq!(open_to_others(place.path()), [] as [PathBuf; 0]);
    drop(running);
}

#[test]
fn an_existing_data_directory_is_made_private() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("one");
    drop(up(place.path(), &["--data", "one"]));
    for directory in [&data, &data.join("store"), &data.join("authority")] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }

    drop(up(place.path(), &["--data", "one"]));

    assert_eq!(open_to_others(place.path()), [] as [PathBuf; 0]);
}

#[test]
fn the_kubeconfig_of_a_cluster_in_memory_is_in_a_private_directory() {
    let place = tempfile::tempdir().unwrap();

    let (running, kubeconfig) = up(place.path(), &["--memory"]);
    drop(running);

    let directory = kubeconfig.parent().unwrap();
    assert_eq!(directory.parent(), Some(place.path()), "{kubeconfig:?}");
    assert_eq!(open_to_others(directory), [] as [PathBuf; 0]);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    let output = flyball(place.path(), &["up", "--memory", "--port", "0"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("expected a directory of mode 0700 that belongs to this user"), "{error}");
}

#[test]
fn a_start_that_fails_writes_no_kubeconfig() {
    let place = tempfile::tempdir().unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let mut command = flyball(place.path(), &["up", "--memory", "--port", "0", "--kubeconfig", "kubeconfig"]);

    let output = command.env("PORT", port).output().unwrap();

    assert!(!output.status.success());
    assert!(!place.path().join("kubeconfig").exists());
}
