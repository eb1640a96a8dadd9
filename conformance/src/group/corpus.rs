//! Group `corpus`: every case of `corpus/` to the real server and to ours, compared with what is written down.

use serde_json::Value;

use crate::corpus::ask::ask;
use crate::corpus::{directory, family, recorded};
use crate::differences::{self, Differences};
use crate::reference::{Error, Reference};
use crate::report::{Finding, Verdict, sentence};
use crate::requests::compare::{Difference, Pairs};

/// Asks both servers the cases whose `family/case` contains `text`.
pub async fn run(text: &str) -> Vec<Finding> {
    let mut findings = ours(text).await.unwrap_or_else(|error| vec![Finding::check("ours", Err(error))]);
    findings.extend(real(text).await);
    findings
}

/// What our server makes of each case, beside what is written down.
pub async fn ours(text: &str) -> Result<Vec<Finding>, String> {
    let client = crate::ours::client().await?;
    let explained = Differences::read(&differences::path())?;
    judge("ours", &client, text, &explained).await
}

async fn real(text: &str) -> Vec<Finding> {
    real_with(async |client| judge("real", &client, text, &Differences::default()).await).await
}

/// What `judge` finds on a new control plane.
pub(super) async fn real_with(judge: impl AsyncFnOnce(kube::Client) -> Result<Vec<Finding>, String>) -> Vec<Finding> {
    let reference = match Reference::start().await {
        Ok(reference) => reference,
        Err(Error::NoGo) => return vec![Finding::skipped("real", Error::NoGo.to_string())],
        Err(error) => return vec![Finding::check("real", Err(sentence(&error)))],
    };
    let found = match reference.admin.client() {
        Ok(client) => judge(client).await,
        Err(error) => Err(sentence(&error)),
    };
    found.unwrap_or_else(|error| vec![Finding::check("real", Err(error))])
}

async fn judge(who: &str, client: &kube::Client, text: &str, explained: &Differences) -> Result<Vec<Finding>, String> {
    let families = family::read_all(&directory())?;
    let expected = recorded::read(&directory().join("recorded"))?;
    let found = ask(client, &families, text).await?;
    let mut findings: Vec<Finding> = Vec::new();
    for (name, outcome) in &found {
        findings.push(Finding {
            case: format!("{who}/{name}"),
            verdict: verdict(name, expected.get(name), outcome, explained),
        });
    }
    let gone = expected.keys().filter(|name| name.contains(text) && !found.contains_key(*name));
    findings.extend(gone.map(|name| Finding::check(format!("{who}/{name}"), Err("no case has this name".into()))));
    Ok(findings)
}

/// An outcome beside the recorded one; `name` is what `differences.md` calls the case below `corpus/`.
pub(super) fn verdict(name: &str, expected: Option<&Value>, outcome: &Value, explained: &Differences) -> Verdict {
    let Some(expected) = expected else {
        return Verdict::Different("nothing is written down: run `conformance observe`".into());
    };
    let found = Pairs::default().differences(expected, outcome);
    let (reasons, unexplained) = explained.explain(&format!("corpus/{name}"), found);
    match (unexplained.is_empty(), reasons.is_empty()) {
        (true, true) => Verdict::Same,
        (true, false) => Verdict::Explained(reasons.join(" ")),
        (false, _) => Verdict::Different(unexplained.iter().map(Difference::to_string).collect::<Vec<_>>().join("\n")),
    }
}
