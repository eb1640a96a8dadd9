//! Group `framework`: one operator and one scenario, on our cluster and on the real control plane with its controllers.

mod admin;
mod scenario;

use flyball_cluster::Cluster;
use flyball_store::Store;

use crate::reference::{Error, Reference};
use crate::report::{Finding, sentence};

/// Runs the scenario on both, or on the one that the filter names; the filter chooses what is reported.
pub async fn run(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("reference") {
        on_ours(&mut findings).await;
    }
    if !text.starts_with("ours") {
        on_the_reference(&mut findings).await;
    }
    findings.retain(|finding| finding.case.contains(text));
    findings
}

async fn on_ours(findings: &mut Vec<Finding>) {
    match Cluster::start(Store::memory()).await {
        Err(error) => findings.push(Finding::check("ours: start", Err(sentence(&error)))),
        Ok(cluster) => scenario::run("ours", cluster.client(), findings).await,
    }
}

async fn on_the_reference(findings: &mut Vec<Finding>) {
    let reference = match Reference::with_controllers().await {
        Err(error @ Error::NoGo) => return findings.push(Finding::skipped("reference: start", error.to_string())),
        Err(error) => return findings.push(Finding::check("reference: start", Err(sentence(&error)))),
        Ok(reference) => reference,
    };
    match reference.admin.client() {
        Err(error) => findings.push(Finding::check("reference: start", Err(sentence(&error)))),
        Ok(client) => {
            scenario::run("reference", client.clone(), findings).await;
            // Ours knows no tokens.
            admin::run(client, findings).await;
        }
    }
}
