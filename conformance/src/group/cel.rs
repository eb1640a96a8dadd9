//! Group `cel`: every rule of `corpus/cel` to the real server and to ours, compared with what is written down.

use crate::cel::{decide, directory, rules};
use crate::corpus::recorded;
use crate::differences::{self, Differences};
use crate::group::corpus::{real_with, verdict};
use crate::report::Finding;

/// Asks both servers the cases whose `file/case` contains `text`.
pub async fn run(text: &str) -> Vec<Finding> {
    let mut findings = ours(text).await.unwrap_or_else(|error| vec![Finding::check("ours", Err(error))]);
    findings.extend(real_with(async |client| judge("real", &client, text, &Differences::default()).await).await);
    findings
}

/// What our server makes of each case, beside what is written down.
pub async fn ours(text: &str) -> Result<Vec<Finding>, String> {
    let client = crate::ours::client().await?;
    let explained = Differences::read(&differences::path())?;
    judge("ours", &client, text, &explained).await
}

async fn judge(who: &str, client: &kube::Client, text: &str, explained: &Differences) -> Result<Vec<Finding>, String> {
    let documents = rules::read_all(&directory())?;
    let expected = recorded::read(&directory().join("recorded"))?;
    let found = decide::decide(client, &documents, text).await?;
    let mut findings: Vec<Finding> = Vec::new();
    for (name, outcome) in &found {
        let verdict = verdict(&format!("cel/{name}"), expected.get(name), outcome, explained);
        findings.push(Finding { case: format!("{who}/{name}"), verdict });
    }
    Ok(findings)
}
