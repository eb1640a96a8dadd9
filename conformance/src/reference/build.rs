//! Builds the control plane with Go from the module files in `reference/`, once a version, into a cache directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::binaries::is_executable;
use super::{Error, process};

/// A Go module of the reference: its name, go.mod and go.sum.
struct Module {
    name: &'static str,
    files: [(&'static str, &'static str); 2],
}

/// The pinned modules, embedded so that a built crate needs no source tree.
const MODULES: [Module; 2] = [
    Module {
        name: "kubernetes",
        files: [
            ("go.mod", include_str!("../../reference/kubernetes/go.mod")),
            ("go.sum", include_str!("../../reference/kubernetes/go.sum")),
        ],
    },
    Module {
        name: "etcd",
        files: [
            ("go.mod", include_str!("../../reference/etcd/go.mod")),
            ("go.sum", include_str!("../../reference/etcd/go.sum")),
        ],
    },
];

/// What is built: the program, its module, its package.
const PROGRAMS: [(&str, &str, &str); 6] = [
    ("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    ("etcdctl", "etcd", "go.etcd.io/etcd/etcdctl/v3"),
    ("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    ("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
];

/// Nobody debugs the reference, and what a debugger needs is a third of what its build leaves on disk.
const NO_DEBUGGER: &str = "-gcflags=all=-dwarf=false";

/// What Go knows of the pinned Kubernetes.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Pinned {
    version: String,
    time: String,
    origin: Origin,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Origin {
    hash: String,
}

/// The directory under `cache` that holds every program of this version, built now where one is missing.
pub fn built(cache: &Path) -> Result<PathBuf, Error> {
    built_with("go", cache)
}

fn built_with(go: &str, cache: &Path) -> Result<PathBuf, Error> {
    let directory = cache.join(version_key());
    let binaries = directory.join("bin");
    let missing = || PROGRAMS.iter().filter(|(name, ..)| !is_executable(&binaries.join(name))).count();
    if missing() == 0 {
        return Ok(binaries);
    }
    require(go)?;
    let _lock = lock(&directory)?;
    if missing() > 0 {
        write_modules(&directory)?;
        build_missing(go, &directory)?;
    }
    Ok(binaries)
}

/// Names what the module files pin, so that a changed pin is built anew.
fn version_key() -> String {
    let mut hash = Sha256::new();
    for module in &MODULES {
        for (name, text) in module.files {
            hash.update(format!("{}/{name} {}\n{text}", module.name, text.len()));
        }
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fails where there is no Go.
pub(crate) fn require_go() -> Result<(), Error> {
    require("go")
}

fn require(go: &str) -> Result<(), Error> {
    match Command::new(go).arg("version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Error::NoGo),
    }
}

/// Held while building: who comes second waits, and finds everything built.
fn lock(directory: &Path) -> Result<File, Error> {
    fs::create_dir_all(directory.join("bin")).map_err(cache_error(directory))?;
    let path = directory.join("lock");
    let file = File::create(&path).map_err(cache_error(&path))?;
    if file.try_lock().is_err() {
        eprintln!("waiting for another build of the reference in {}", directory.display());
        file.lock().map_err(cache_error(&path))?;
    }
    Ok(file)
}

fn write_modules(directory: &Path) -> Result<(), Error> {
    for module in &MODULES {
        let path = directory.join("modules").join(module.name);
        fs::create_dir_all(&path).map_err(cache_error(&path))?;
        for (name, text) in module.files {
            fs::write(path.join(name), text).map_err(cache_error(&path))?;
        }
    }
    Ok(())
}

fn build_missing(go: &str, directory: &Path) -> Result<(), Error> {
    eprintln!("building the reference control plane into {}, once", directory.join("bin").display());
    let linker_flags = linker_flags(go, &directory.join("modules/kubernetes"));
    for (name, module, package) in PROGRAMS {
        let binary = directory.join("bin").join(name);
        if is_executable(&binary) {
            continue;
        }
        let started = Instant::now();
        let unfinished = directory.join("bin").join(format!(".{name}"));
        let mut command = Command::new(go);
        command.current_dir(directory.join("modules").join(module)).env("GOWORK", "off");
        command
            .args(["build", "-trimpath", NO_DEBUGGER, "-ldflags", &linker_flags, "-o"])
            .arg(&unfinished)
            .arg(package);
        run(&mut command, name)?;
        fs::rename(&unfinished, &binary).map_err(cache_error(&binary))?;
        eprintln!("  {name:24} {:6.1} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}

fn run(command: &mut Command, name: &'static str) -> Result<(), Error> {
    let failed = |output: String| Error::GoBuild { name, output };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(process::tail(&String::from_utf8_lossy(&output.stderr))))
}

/// What gives `/version` its numbers; a release's own build sets the same variables.
fn linker_flags(go: &str, module: &Path) -> String {
    let listed = Command::new(go)
        .current_dir(module)
        .env("GOWORK", "off")
        .args(["list", "-m", "-json", "k8s.io/kubernetes"])
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let pinned: Pinned = serde_json::from_slice(&listed).unwrap_or_default();
    flags_of(&pinned)
}

fn flags_of(pinned: &Pinned) -> String {
    let mut numbers = pinned.version.trim_start_matches('v').split('.');
    let values = [
        ("gitVersion", pinned.version.as_str()),
        ("gitMajor", numbers.next().unwrap_or_default()),
        ("gitMinor", numbers.next().unwrap_or_default()),
        ("gitCommit", pinned.origin.hash.as_str()),
        ("gitTreeState", "clean"),
        ("buildDate", pinned.time.as_str()),
    ];
    let known = values.iter().filter(|(_, value)| !value.is_empty());
    let flags: Vec<String> = known
        .map(|(name, value)| format!("-X k8s.io/component-base/version.{name}={value}"))
        .collect();
    format!("-s -w {}", flags.join(" "))
}

fn cache_error(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Cache { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(directory: &Path, text: &str) -> String {
        let path = directory.join("go");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    #[test]
    fn without_go_the_error_names_both_ways_out() {
        let cache = tempfile::tempdir().unwrap();
        let error = built_with("no-such-go", cache.path()).unwrap_err();
        assert!(matches!(error, Error::NoGo));
        assert!(error.to_string().contains("install Go 1.26 or newer, or point KUBEBUILDER_ASSETS"));
    }

    #[test]
    fn a_failed_build_shows_the_compilers_last_words_and_what_to_check() {
        let cache = tempfile::tempdir().unwrap();
        let go = script(cache.path(), r#"case "$1" in build) echo "foo.go:1: syntax error" >&2; exit 1;; esac"#);

        let error = built_with(&go, cache.path()).unwrap_err().to_string();

        assert!(error.starts_with("go could not build etcd; it needs Go 1.26 or newer and a reachable module proxy"));
        assert!(error.ends_with("foo.go:1: syntax error"), "{error}");
    }

    #[test]
    fn each_program_is_built_once() {
        let cache = tempfile::tempdir().unwrap();
        let build = r#"[ "$1" = build ] || exit 0; while [ "$1" != -o ]; do shift; done; echo "$3" >>$0.built"#;
        let go = script(cache.path(), &format!("{build}; echo > $2; chmod +x $2"));

        let first = built_with(&go, cache.path()).unwrap();
        let second = built_with(&go, cache.path()).unwrap();

        assert_eq!(first, second);
        let packages = fs::read_to_string(format!("{go}.built")).unwrap();
        assert_eq!(packages.lines().count(), PROGRAMS.len());
    }

    #[test]
    fn the_version_is_told_to_the_linker() {
        let origin = Origin { hash: "abc".into() };
        let flags = flags_of(&Pinned {
            version: "v1.36.4".into(),
            time: "2026-08-20T11:51:43Z".into(),
            origin,
        });
        for expected in [
            "version.gitVersion=v1.36.4",
            "version.gitMajor=1 ",
            "version.gitMinor=36 ",
            "gitCommit=abc",
        ] {
            assert!(flags.contains(expected), "{flags} lacks {expected}");
        }
    }
}
