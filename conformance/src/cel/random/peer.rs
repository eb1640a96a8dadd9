//! The Go program `peers/cel`, built once a version into the cache directory, and asked over its standard streams.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::reference::cache_directory;

/// What Go builds, embedded so that a built crate needs no source tree.
const FILES: [(&str, &str); 3] = [
    ("go.mod", include_str!("../../../peers/cel/go.mod")),
    ("go.sum", include_str!("../../../peers/cel/go.sum")),
    ("main.go", include_str!("../../../peers/cel/main.go")),
];

/// An expression and the values of its variables.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// Whether the environment is that of a CustomResourceDefinition.
    pub kubernetes: bool,
    /// The expression.
    pub expression: String,
    /// The type of each variable.
    pub types: &'static BTreeMap<&'static str, &'static str>,
    /// The value of each variable; numbers as text.
    pub values: BTreeMap<&'static str, Json>,
}

/// What cel-go made of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// How it crashed.
    pub panic: String,
    /// What is wrong with the syntax or the types.
    pub invalid: String,
    /// The type of the result.
    #[serde(rename = "type")]
    pub kind: String,
    /// Why no program could be made of it.
    pub program: String,
    /// Why it has no value.
    pub error: String,
    /// Its value, in canonical form.
    pub value: Json,
    /// What it cost.
    pub cost: Option<u64>,
}

/// The running program.
pub struct Peer {
    child: Child,
}

impl Peer {
    /// Builds the program if it is not there, and starts it.
    pub fn start() -> Result<Self, String> {
        let mut command = Command::new(built()?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("start cel-go's side: {error}"))?;
        Ok(Self { child })
    }

    /// The answers to requests, in order.
    pub fn ask(&mut self, requests: &[Request]) -> Result<Vec<Answer>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("cel-go's side ended: {error}");
        let (Some(input), Some(output)) = (self.child.stdin.as_mut(), self.child.stdout.as_mut()) else {
            return Err(failed(&"no streams"));
        };
        let mut lines = Vec::new();
        for request in requests {
            serde_json::to_writer(&mut lines, request).map_err(|error| failed(&error))?;
            lines.push(b'\n');
        }
        thread::scope(|scope| {
            let written = scope.spawn(move || input.write_all(&lines).and_then(|()| input.flush()));
            // the program answers a line a line, so nothing is left in this buffer when the last answer is read
            let answers = BufReader::new(output).lines().take(requests.len());
            let read: Result<Vec<Answer>, String> = answers
                .map(|line| {
                    let line = line.map_err(|error| failed(&error))?;
                    serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))
                })
                .collect();
            let written = written.join().map_err(|_| failed(&"a panic"))?;
            written.map_err(|error| failed(&error))?;
            let read = read?;
            if read.len() == requests.len() {
                Ok(read)
            } else {
                Err(failed(&"too few answers"))
            }
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if let Err(error) = self.child.wait() {
            eprintln!("wait for cel-go's side: {error}");
        }
    }
}

fn built() -> Result<std::path::PathBuf, String> {
    let mut hash = Sha256::new();
    FILES
        .iter()
        .for_each(|(name, text)| hash.update(format!("{name} {}\n{text}", text.len())));
    let key: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let directory = cache_directory("peers").map_err(|error| error.to_string())?.join(format!("cel-{key}"));
    let program = directory.join("cel");
    if program.is_file() {
        return Ok(program);
    }
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    fs::create_dir_all(&directory).map_err(wrong)?;
    for (name, text) in FILES {
        fs::write(directory.join(name), text).map_err(wrong)?;
    }
    eprintln!("building cel-go's side into {}, once", directory.display());
    let unfinished = directory.join(".cel");
    let mut command = Command::new("go");
    command
        .current_dir(&directory)
        .env("GOWORK", "off")
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"]);
    let output = command.arg(&unfinished).arg(".").output();
    let output = output.map_err(|error| format!("start go, which this needs: {error}"))?;
    if !output.status.success() {
        return Err(format!("go build of peers/cel: {}", String::from_utf8_lossy(&output.stderr)));
    }
    fs::rename(&unfinished, &program).map_err(wrong)?;
    Ok(program)
}
