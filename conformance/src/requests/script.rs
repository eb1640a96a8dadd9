//! A script's form: what is sent, what the real server is known to answer, what is kept for later requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// Requests that are sent in order and share variables; its name is its file's.
#[derive(Debug)]
pub struct Script {
    /// The file's name without `.yaml`.
    pub name: String,
    /// The requests, in order.
    pub requests: Vec<Request>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Said to the reader of the file only.
    #[serde(rename = "about")]
    _about: String,
    requests: Vec<Request>,
}

/// A request that no file has, whatever its answer.
pub(crate) fn request(line: String, body: Option<Value>) -> Request {
    let form = json!({"name": "", "request": line, "status": 0});
    let request: Request = serde_json::from_value(form).expect("a request's form");
    Request { body, ..request }
}

/// One request. `${name}` in the request line, a header, the body or the text stands for what `keep` kept under that
/// name; `${pad:N}` for N letters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Unique in its file.
    pub name: String,
    /// The method and the path, as in `GET /api/v1/namespaces`.
    pub request: String,
    /// Headers besides `User-Agent`; `Content-Type` is JSON where a body is sent and nothing else is said.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, sent as JSON.
    pub body: Option<Value>,
    /// The body, sent as it stands; for what is no JSON.
    pub text: Option<String>,
    /// What the real server answers: a guard that the request does what its author believes.
    pub status: u16,
    /// Variables for later requests: name to JSON pointer into the answer.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// Asked again until the answer is this, for what the real server does in its own time.
    pub until: Option<Until>,
}

/// What an answer must be before it is taken.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The status code.
    pub status: Option<u16>,
    /// A text that the body contains.
    pub contains: Option<String>,
    /// A text that the body no longer contains.
    pub lacks: Option<String>,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no script.
    #[error("{}: {message}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

/// Reads every `*.yaml` of `directory`, by name.
pub fn read_all(directory: &Path) -> Result<Vec<Script>, ScriptError> {
    let unreadable = |source| ScriptError::Read { path: directory.to_owned(), source };
    let entries: Vec<_> = fs::read_dir(directory).and_then(Iterator::collect).map_err(unreadable)?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Script, ScriptError> {
    let text = fs::read_to_string(path).map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
    let form = |message: String| ScriptError::Form { path: path.to_owned(), message };
    let document: Document = serde_saphyr::from_str(&text).map_err(|error| form(error.to_string()))?;
    let mut names = BTreeSet::new();
    for request in &document.requests {
        if !names.insert(&request.name) {
            return Err(form(format!("two requests are called `{}`", request.name)));
        }
        if !request.request.contains(" /") {
            return Err(form(format!("`{}`: `{}` is no method and path", request.name, request.request)));
        }
        if request.body.is_some() && request.text.is_some() {
            return Err(form(format!("`{}` has a body and a text; it can have one", request.name)));
        }
    }
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Script { name, requests: document.requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("case.yaml"), text).unwrap();
        read_all(directory.path()).unwrap_err().to_string()
    }

    #[test]
    fn every_committed_script_is_well_formed() {
        let scripts = read_all(&crate::requests::directory()).unwrap();
        let requests: usize = scripts.iter().map(|script| script.requests.len()).sum();
        assert!(requests >= 200, "{requests} requests");
    }

    #[test]
    fn a_name_given_twice_is_refused() {
        let one = "{name: a, request: GET /api, status: 200}";
        assert!(problem(&format!("about: x\nrequests: [{one}, {one}]")).contains("two requests are called `a`"));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(problem("about: x\nrequests: [{name: a, request: GET /api, stats: 200}]").contains("stats"));
    }
}
