//! Our server on every case of `corpus/cel`, beside what the real server was seen to answer.

use conformance::group::cel;
use conformance::report::Verdict;

#[tokio::test]
async fn our_server_decides_on_rules_as_the_real_one_did() {
    let findings = cel::ours("").await.unwrap();
    let different: Vec<String> = findings
        .iter()
        .filter_map(|finding| match &finding.verdict {
            Verdict::Different(how) => Some(format!("{}\n{how}", finding.case)),
            _ => None,
        })
        .collect();
    let (count, all) = (different.len(), findings.len());
    assert!(different.is_empty(), "{}\n{count} of {all} differ", different.join("\n\n"));
}
