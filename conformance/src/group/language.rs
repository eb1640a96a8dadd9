//! Group `language`: cel-spec's tests and random expressions, on our CEL engine beside what cel-go makes of them.

use crate::cel::random;
use crate::cel::spec::{self, Outcome};
use crate::reference;
use crate::report::{Finding, Verdict};

/// How many random expressions are compared too; `cel-random` compares as many as asked.
const RANDOM_EXPRESSIONS: usize = 2_000;
/// What decides them, so that each run compares the same ones.
const SEED: u64 = 6;

/// Runs the tests whose `file/section/test` contains `text`, and random expressions where there is none.
pub async fn run(text: &str) -> Vec<Finding> {
    if let Err(error) = reference::require_go() {
        return vec![Finding::skipped("cel-spec", error.to_string())];
    }
    let mut findings = match spec::run(text) {
        Err(error) => vec![Finding::check("cel-spec", Err(error))],
        Ok(report) => report.outcomes().filter_map(|(name, outcome)| finding(name, outcome)).collect(),
    };
    if text.is_empty() {
        findings.push(random_expressions());
    }
    findings
}

/// Nothing is said of tests that are out of scope: `cel-spec` counts them by their reasons.
fn finding(name: String, outcome: &Outcome) -> Option<Finding> {
    let verdict = match outcome {
        Outcome::Passed => Verdict::Same,
        Outcome::AsCelGo => Verdict::Explained("cel-go departs from cel-spec, and Kubernetes runs cel-go.".into()),
        Outcome::Failed(how) => Verdict::Different(how.clone()),
        Outcome::OutOfScope(_) => return None,
    };
    Some(Finding { case: name, verdict })
}

fn random_expressions() -> Finding {
    let compared = random::run(RANDOM_EXPRESSIONS, SEED).and_then(|report| match report.differences() {
        0 => Ok(()),
        _ => Err(report.to_string()),
    });
    Finding::check("random expressions", compared)
}
