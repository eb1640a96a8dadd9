//! Group `controllers`: the scenarios of `conformance/controllers`, with our controllers and with kube-controller-manager.
//!
//! Neither side has nodes: a scenario says itself how pods fare. What is left in the end, objects and events, has to be equal.

mod normal;
mod scenario;

use flyball_cluster::Cluster;
use flyball_store::Store;

use crate::differences::Differences;
use crate::group::unready::Unready;
use crate::reference::Reference;
use crate::report::{Finding, Verdict, sentence};
use crate::requests::compare::{Difference, Pairs};
use crate::scenario::World;
use scenario::Scenario;

/// Plays the scenarios whose names contain `text` on both.
pub async fn run(text: &str) -> Vec<Finding> {
    compare_all(text).await.unwrap_or_else(Unready::findings)
}

async fn compare_all(text: &str) -> Result<Vec<Finding>, Unready> {
    let mut scenarios = Scenario::read_all().map_err(Unready::Failed)?;
    scenarios.retain(|scenario| scenario.name.contains(text));
    let explained = Differences::read(&scenario::directory().join("differences.md")).map_err(Unready::Failed)?;
    let cluster = Cluster::builder().without_nodes().start(Store::memory()).await;
    let cluster = cluster.map_err(|error| Unready::Failed(sentence(&error)))?;
    let reference = Reference::with_controllers().await?;
    let (ours, real) = (World::new(cluster.client()), World::new(reference.admin.client()?));
    let mut findings = Vec::new();
    for scenario in &scenarios {
        let (expected, found) = tokio::join!(scenario.play(&real), scenario.play(&ours));
        let verdict = match (expected, found) {
            (Err(error), _) => Verdict::Different(format!("kube-controller-manager: {error}")),
            (_, Err(error)) => Verdict::Different(format!("ours: {error}")),
            (Ok(expected), Ok(found)) => {
                let differences = Pairs::default().differences(&expected, &found);
                judge(explained.explain(&format!("controllers/{}", scenario.name), differences))
            }
        };
        findings.push(Finding { case: scenario.name.clone(), verdict });
    }
    Ok(findings)
}

fn judge((reasons, unexplained): (Vec<&str>, Vec<Difference>)) -> Verdict {
    match (&*reasons, &*unexplained) {
        ([], []) => Verdict::Same,
        (reasons, []) => Verdict::Explained(reasons.join(" ")),
        (_, unexplained) => {
            let lines: Vec<_> = unexplained.iter().map(Difference::to_string).collect();
            Verdict::Different(lines.join("\n"))
        }
    }
}
