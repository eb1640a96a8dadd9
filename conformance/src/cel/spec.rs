//! cel-spec's own conformance tests (`tests/simple/testdata` of the Go module `cel.dev/expr`), run through our engine.

mod expected;
mod run;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::textproto::{self, Message};

/// What became of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It came out as cel-spec says.
    Passed,
    /// It came out as cel-go has it, which departs from cel-spec there.
    AsCelGo,
    /// It came out as neither says.
    Failed(String),
    /// It needs something that expressions in Kubernetes do not have.
    OutOfScope(&'static str),
}

/// How many tests of a file ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// As cel-spec says.
    pub passed: usize,
    /// As cel-go, which departs from cel-spec.
    pub as_cel_go: usize,
    /// Not so.
    pub failed: usize,
    /// Not asked.
    pub out_of_scope: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::AsCelGo => self.as_cel_go += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::OutOfScope(_) => self.out_of_scope += 1,
        }
    }
}

/// The outcome of every test, by file and by `section/test`.
#[derive(Debug, Default)]
pub struct Report {
    files: BTreeMap<String, Vec<(String, Outcome)>>,
}

impl Report {
    /// Every outcome, by `file/section/test`.
    pub fn outcomes(&self) -> impl Iterator<Item = (String, &Outcome)> {
        let tests = self.files.iter().flat_map(|(file, tests)| tests.iter().map(move |test| (file, test)));
        tests.map(|(file, (name, outcome))| (format!("{file}/{name}"), outcome))
    }

    /// How everything ended.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.files.values().flatten().for_each(|(_, outcome)| counts.add(outcome));
        counts
    }
}

/// Each failure, why tests are out of scope, the table by file, and the closing line.
impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut reasons = BTreeMap::<&str, usize>::new();
        for (file, tests) in &self.files {
            for (name, outcome) in tests {
                match outcome {
                    Outcome::Failed(how) => writeln!(formatter, "failed  {file}/{name}: {how}")?,
                    Outcome::OutOfScope(why) => *reasons.entry(why).or_default() += 1,
                    Outcome::Passed | Outcome::AsCelGo => {}
                }
            }
        }
        for (reason, count) in reasons {
            writeln!(formatter, "out of scope: {count:4} {reason}")?;
        }
        let heads = ["passed", "as cel-go", "failed", "out of scope"];
        writeln!(
            formatter,
            "{:20} {:>8} {:>10} {:>8} {:>14}",
            "file", heads[0], heads[1], heads[2], heads[3]
        )?;
        for (file, tests) in &self.files {
            let mut counts = Counts::default();
            tests.iter().for_each(|(_, outcome)| counts.add(outcome));
            let Counts { passed, as_cel_go, failed, out_of_scope } = counts;
            writeln!(formatter, "{file:20} {passed:>8} {as_cel_go:>10} {failed:>8} {out_of_scope:>14}")?;
        }
        let Counts { passed, as_cel_go, failed, out_of_scope } = self.counts();
        write!(
            formatter,
            "\n{passed} passed, {as_cel_go} as cel-go, {failed} failed, {out_of_scope} out of scope"
        )
    }
}

/// Runs every test whose `file/section/test` contains `text`.
pub fn run(text: &str) -> Result<Report, String> {
    let directory = module_directory()?.join("tests/simple/testdata");
    let entries = fs::read_dir(&directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| format!("read {}: {error}", directory.display()))?;
    let mut report = Report::default();
    for path in entries.iter().map(fs::DirEntry::path) {
        if path.extension().is_none_or(|extension| extension != "textproto") {
            continue;
        }
        let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let tests = read(&path)?;
        let asked = tests.iter().filter(|(name, _)| format!("{file}/{name}").contains(text));
        let outcomes: Vec<_> = asked
            .map(|(name, test)| (name.clone(), run::outcome(&format!("{file}/{name}"), test)))
            .collect();
        if !outcomes.is_empty() {
            report.files.insert(file, outcomes);
        }
    }
    Ok(report)
}

/// The tests of a file, by `section/test`.
fn read(path: &Path) -> Result<Vec<(String, Message)>, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let file = textproto::parse(&text).map_err(wrong)?;
    let mut tests = Vec::new();
    for section in file.messages("section") {
        for test in section.messages("test") {
            tests.push((format!("{}/{}", section.text("name"), test.text("name")), test.clone()));
        }
    }
    Ok(tests)
}

/// Where Go keeps the module that Kubernetes pins; it is downloaded if it is not there.
fn module_directory() -> Result<PathBuf, String> {
    let pins = concat!(env!("CARGO_MANIFEST_DIR"), "/reference/kubernetes");
    let mut command = Command::new("go");
    command
        .current_dir(pins)
        .env("GOWORK", "off")
        .args(["mod", "download", "-json", "cel.dev/expr"]);
    let output = command.output().map_err(|error| format!("start go, which this needs: {error}"))?;
    let module: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let directory = module["Dir"].as_str().map(PathBuf::from);
    directory.ok_or_else(|| format!("go mod download cel.dev/expr: {}", String::from_utf8_lossy(&output.stderr)))
}
