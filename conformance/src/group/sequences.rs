//! Group `sequences`: applies of several managers to the real server and to ours, beside what is written down.

use crate::reference::{Error, Reference};
use crate::report::{Finding, sentence};
use crate::sequences::outcome::Outcome;
use crate::sequences::replay::replay;
use crate::sequences::{self, Document};
use serde_json::Value;

/// Sends both servers the files whose sequences' names contain `text`.
pub async fn run(text: &str) -> Vec<Finding> {
    let mut findings = match crate::ours::client().await {
        Ok(client) => judge("ours", &client, text).await,
        Err(error) => vec![Finding::check("ours", Err(error))],
    };
    let reference = match Reference::start().await {
        Ok(reference) => reference,
        Err(Error::NoGo) => {
            findings.push(Finding::skipped("real", Error::NoGo.to_string()));
            return findings;
        }
        Err(error) => {
            findings.push(Finding::check("real", Err(sentence(&error))));
            return findings;
        }
    };
    findings.extend(match reference.admin.client() {
        Ok(client) => judge("real", &client, text).await,
        Err(error) => vec![Finding::check("real", Err(sentence(&error)))],
    });
    findings
}

async fn judge(who: &str, client: &kube::Client, text: &str) -> Vec<Finding> {
    let documents = match sequences::read_all() {
        Ok(documents) => documents,
        Err(error) => return vec![Finding::check(who, Err(error))],
    };
    let mut findings = Vec::new();
    for document in &documents {
        let name = |sequence: &Value| format!("{}/{}", document.name, sequence["name"].as_str().unwrap_or_default());
        if !document.sequences().iter().any(|sequence| name(sequence).contains(text)) {
            continue;
        }
        match replay(client, document).await {
            Ok(outcomes) => {
                let pairs = document.sequences().iter().zip(outcomes);
                let asked = pairs.filter(|(sequence, _)| name(sequence).contains(text));
                findings.extend(asked.map(|(sequence, outcomes)| {
                    Finding::check(format!("{who}/{}", name(sequence)), compare(document, sequence, &outcomes))
                }));
            }
            Err(error) => findings.push(Finding::check(format!("{who}/{}", document.name), Err(error))),
        }
    }
    findings
}

fn compare(document: &Document, sequence: &Value, outcomes: &[Outcome]) -> Result<(), String> {
    let steps = sequence["steps"].as_array().into_iter().flatten();
    for (index, (step, outcome)) in steps.zip(outcomes).enumerate() {
        let Some(recorded) = Outcome::recorded(step) else {
            return Err(format!("nothing is written down in {}: run `conformance observe`", document.name));
        };
        if let Some(difference) = outcome.difference(&recorded) {
            return Err(format!("step {}: {difference}", index + 1));
        }
    }
    Ok(())
}
