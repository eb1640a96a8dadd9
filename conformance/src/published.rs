//! The CustomResourceDefinitions and samples of published projects to both servers. `collect` reads them out of Go modules,
//! `ask` sends them to a server.

mod ask;
mod collect;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;

use crate::reference::Reference;
use crate::report::{Finding, Report, Verdict, sentence};
use crate::requests::compare::{Difference, Pairs};
use ask::{Outcomes, ask};
use collect::Project;

/// The pinned releases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    modules: Vec<String>,
}

/// Where the pins are: in the source tree, so that another release needs no build.
fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/published.yaml"))
}

/// Compares what both servers answer, for the projects whose modules contain `text`.
pub async fn run(text: &str) -> Result<Report, String> {
    let pins = std::fs::read_to_string(path()).map_err(|error| format!("read {}: {error}", path().display()))?;
    let mut pins: Published = serde_saphyr::from_str(&pins).map_err(|error| error.to_string())?;
    pins.modules.retain(|module| module.contains(text));
    let projects = pins
        .modules
        .iter()
        .map(|module| collect::collect(module))
        .collect::<Result<Vec<_>, _>>()?;
    let started = Instant::now();
    let reference = Reference::start().await.map_err(|error| sentence(&error))?;
    let client = reference.admin.client().map_err(|error| sentence(&error))?;
    let real = ask(&client, &projects).await?;
    let ours = ask(&crate::ours::client().await?, &projects).await?;
    let findings = compare(&real, &ours);
    summarise(&projects, &real, &ours);
    let mut report = Report::default();
    report.add("published", findings, started.elapsed());
    Ok(report)
}

fn compare(real: &Outcomes, ours: &Outcomes) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, expected) in real {
        let differences = match ours.get(name) {
            Some(found) => Pairs::default().differences(expected, found),
            None => Pairs::default().differences(expected, &serde_json::json!({})),
        };
        let verdict = if differences.is_empty() {
            Verdict::Same
        } else {
            let shown: Vec<String> = differences.iter().take(3).map(Difference::to_string).collect();
            Verdict::Different(shown.join("\n"))
        };
        findings.push(Finding { case: name.clone(), verdict });
    }
    let surplus = ours.keys().filter(|name| !real.contains_key(*name));
    findings.extend(surplus.map(|name| Finding::check(name, Err("only our server was asked this".into()))));
    findings
}

/// A line a project: definitions, how many each server accepts, samples, and how many are answered alike.
fn summarise(projects: &[Project], real: &Outcomes, ours: &Outcomes) {
    println!(
        "{:56} {:>5} {:>6} {:>6} {:>8} {:>6}",
        "project", "CRDs", "real", "ours", "samples", "same"
    );
    let accepted = |outcomes: &Outcomes, prefix: &str| {
        let definitions = outcomes.iter().filter(|(name, _)| name.starts_with(prefix));
        definitions
            .filter(|(_, outcome)| outcome["code"].as_u64().is_some_and(|code| code < 300))
            .count()
    };
    for Project { module, definitions, .. } in projects {
        let (crds, objects) = (format!("{module}/definition/"), format!("{module}/sample/"));
        let samples: BTreeMap<_, _> = real.iter().filter(|(name, _)| name.starts_with(&objects)).collect();
        let alike = samples.iter().filter(|(name, outcome)| ours.get(**name) == Some(**outcome)).count();
        let (of_real, of_ours) = (accepted(real, &crds), accepted(ours, &crds));
        let (count, samples) = (definitions.len(), samples.len());
        println!("{module:56} {count:>5} {of_real:>6} {of_ours:>6} {samples:>8} {alike:>6}");
    }
}
