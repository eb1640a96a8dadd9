//! Group `requests`: every script of `requests/` to both servers, compared answer by answer.

use flyball_store::{Etcd, Store};
use std::collections::BTreeMap;

use crate::differences::{self, Differences};
use crate::group::unready::Unready;
use crate::reference::{Etcd as Cluster, Reference, Setting};
use crate::report::{Finding, Verdict, sentence};
use crate::requests::compare::{Difference, Pairs};
use crate::requests::directory;
use crate::requests::normal::Normal;
use crate::requests::script::{self, Request, Script};
use crate::requests::send::{Answer, Session};
use crate::requests::webhooks::Webhooks;

/// How many differences of one answer are shown where many answers are; a filtered run shows all.
const SHOWN: usize = 12;

/// Sends the scripts that have a request whose `script/name` contains `text`; whole, for later requests need earlier ones.
pub async fn run(text: &str) -> Vec<Finding> {
    compare_all(text, Store::memory()).await.unwrap_or_else(Unready::findings)
}

/// The same, with our server on a real etcd.
pub async fn run_on_etcd(text: &str) -> Vec<Finding> {
    let on_etcd = async {
        let etcd = Cluster::start(1, Setting::Hasty).await?;
        let store = Etcd::new(etcd.endpoints()).open().await;
        compare_all(text, store.map_err(|error| Unready::Failed(sentence(&error)))?).await
    };
    on_etcd.await.unwrap_or_else(Unready::findings)
}

async fn compare_all(text: &str, store: Store) -> Result<Vec<Finding>, Unready> {
    let mut scripts = script::read_all(&directory()).map_err(|error| Unready::Failed(sentence(&error)))?;
    let explained = Differences::read(&differences::path()).map_err(Unready::Failed)?;
    scripts.retain(|script| script.requests.iter().any(|request| case(script, request).contains(text)));
    let reference = Reference::start().await?;
    let real = reference.admin.client()?;
    let ours = crate::ours::client_on(store).await.map_err(Unready::Failed)?;
    let shown = if text.is_empty() { SHOWN } else { usize::MAX };
    let webhooks = Webhooks::start().await.map_err(|error| Unready::Failed(sentence(&error)))?;
    let variables = webhooks.variables();
    let comparison = Comparison { real, ours, explained, shown, variables };
    let mut findings = Vec::new();
    for script in &scripts {
        findings.extend(comparison.compare(script).await);
    }
    findings.retain(|finding| finding.case.contains(text));
    // What a line explains is known only when everything ran.
    if text.is_empty() {
        findings.extend(explained_in_vain(&comparison.explained));
    }
    Ok(findings)
}

/// Two servers, and what is known to differ.
struct Comparison {
    real: kube::Client,
    ours: kube::Client,
    explained: Differences,
    shown: usize,
    /// Where the webhooks are that scripts configure.
    variables: BTreeMap<String, String>,
}

fn case(script: &Script, request: &Request) -> String {
    format!("{}/{}", script.name, request.name)
}

impl Comparison {
    async fn compare(&self, script: &Script) -> Vec<Finding> {
        let session = |client: &kube::Client| Session::with(client.clone(), self.variables.clone());
        let (mut real, mut ours) = (session(&self.real), session(&self.ours));
        let (mut normal, mut pairs) = (Normal::default(), Pairs::default());
        let mut findings = Vec::new();
        for request in &script.requests {
            let (expected, found) = tokio::join!(real.send(request), ours.send(request));
            let case = case(script, request);
            normal.expect(request);
            let verdict = match (expected, found) {
                (Err(error), _) => Verdict::Different(format!("the real server: {error}")),
                (Ok(answer), _) if answer.status != request.status => Verdict::Different(surprise(request, &answer)),
                (_, Err(error)) => Verdict::Different(format!("our server: {error}")),
                (Ok(expected), Ok(found)) => {
                    let found = pairs.differences(&normal.of(&expected), &normal.of(&found));
                    self.judge(self.explained.explain(&case, found))
                }
            };
            findings.push(Finding { case, verdict });
        }
        findings
    }

    fn judge(&self, (reasons, unexplained): (Vec<&str>, Vec<Difference>)) -> Verdict {
        if unexplained.is_empty() && reasons.is_empty() {
            return Verdict::Same;
        }
        if unexplained.is_empty() {
            return Verdict::Explained(reasons.join(" "));
        }
        let mut lines: Vec<String> = unexplained.iter().take(self.shown).map(Difference::to_string).collect();
        if unexplained.len() > self.shown {
            lines.push(format!("and {} more", unexplained.len() - self.shown));
        }
        Verdict::Different(lines.join("\n"))
    }
}

fn surprise(request: &Request, answer: &Answer) -> String {
    format!(
        "the script says that the real server answers {}, but it answered {}",
        request.status, answer.status
    )
}

/// Explanations that explain nothing are errors.
fn explained_in_vain(explained: &Differences) -> Vec<Finding> {
    let idle = explained
        .idle()
        .into_iter()
        .map(|line| (line, "explains no difference any more: remove the line"));
    let unmet = explained.unmet().into_iter().map(|line| (line, "names no request: remove the line"));
    idle.chain(unmet)
        .map(|(line, wrong)| Finding::check(format!("differences.md {line}"), Err(wrong.into())))
        .collect()
}
