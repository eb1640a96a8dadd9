//! Finds the files that the rules look at, and reads them.

use std::path::{Path, PathBuf};

/// One text file of the repository.
pub struct Source {
    /// Its path from the repository's root, with forward slashes.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// The repository's root, two folders above this crate.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/tidy is two below the root")
        .to_owned()
}

/// Every Rust file of the repository.
pub fn rust(root: &Path) -> Vec<Source> {
    collect(root, |path| path.ends_with(".rs"))
}

/// Every file that people write: code, documentation, scripts and manifests.
pub fn written(root: &Path) -> Vec<Source> {
    let endings = [
        ".rs", ".md", ".toml", ".yaml", ".yml", ".mod", ".sh", ".go", ".py", "/run",
    ];
    collect(root, |path| endings.iter().any(|ending| path.ends_with(ending)))
}

fn collect(root: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Source> {
    let mut folders = vec![root.to_owned()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository is readable") {
            let entry = entry.expect("a folder of the repository is readable");
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != ".git" && name != "node_modules" {
                    folders.push(path);
                }
                continue;
            }
            let relative = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            if wanted(&relative) {
                let text = std::fs::read_to_string(&path).expect("source files are UTF-8");
                sources.push(Source { path: relative, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}
