//! Random expressions, evaluated by our engine and by cel-go as Kubernetes configures it (`peers/cel`), and compared.

mod compare;
mod generate;
mod inputs;
mod peer;
mod templates;

pub use compare::{Finding, Report};

use std::time::{SystemTime, UNIX_EPOCH};

use compare::judge;
use generate::Generator;
use peer::{Peer, Request};

/// How many expressions are sent before their answers are read.
const BATCH: usize = 500;

/// A seed that no other run has.
pub fn any_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

/// How often cel-go is asked again where it differs: it iterates over maps in any order.
const RETRIES: usize = 12;

/// Compares this many expressions.
pub fn run(count: usize, seed: u64) -> Result<Report, String> {
    let mut generator = Generator::new(seed);
    compare((0..count).map(|_| generator.request()), seed)
}

/// Compares expressions that are given, on the values that a seed makes.
pub fn run_given(expressions: &[String], seed: u64) -> Result<Report, String> {
    let mut generator = Generator::new(seed);
    compare(expressions.iter().map(|text| generator.request_of(text)), seed)
}

fn compare(mut requests: impl Iterator<Item = Request>, seed: u64) -> Result<Report, String> {
    let mut peer = Peer::start()?;
    let mut report = Report::new(seed);
    loop {
        let batch: Vec<Request> = requests.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(report);
        }
        let answers = peer.ask(&batch)?;
        for (request, answer) in batch.iter().zip(&answers) {
            let mut judged = judge(request, answer);
            if matches!(judged.0, Finding::Different(..)) {
                let again = peer.ask(&vec![request.clone(); RETRIES])?;
                let same = again
                    .iter()
                    .map(|answer| judge(request, answer))
                    .find(|(found, _)| !matches!(found, Finding::Different(..)));
                judged = same.unwrap_or(judged);
            }
            report.add(judged);
        }
    }
}
