//! Three replicas of one operator, as processes, whose leader is killed, suspended, cut off and stopped, again and again.
//! Never do two of them write: by the order in which the server took their writes, and by the real server's audit log.

mod proxy;
mod record;
pub mod replica;
mod trial;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use flyball_apiserver::ApiServer;
use flyball_apiserver::authn::identity::Authority;
use flyball_apiserver::authn::kubeconfig;
use flyball_apiserver::http::serve::{self, serve};
use flyball_store::Store;

use crate::reference::{Audit, Error, Reference, Setup};
use crate::report::{Finding, sentence};
use trial::{Times, Trial};

/// A kill, a suspension, a cut and a stop.
const BLOWS: usize = 4;

/// What is tried, and how often.
#[derive(clap::Args)]
pub struct Options {
    /// How often the leader is killed, suspended past its lease, cut off or stopped, in turn
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// The lease duration in seconds; the renew deadline is two thirds of it, the retry period two fifteenths
    #[arg(long, default_value_t = 3)]
    lease: u64,
    /// Which server
    #[arg(long, value_enum, default_value_t = Against::Both)]
    against: Against,
}

/// Which server replicas are tried on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// A real kube-apiserver and ours.
    Both,
    /// A real kube-apiserver.
    Reference,
    /// Ours.
    Ours,
}

/// How long it may take until another replica writes.
#[derive(Clone, Copy)]
struct Bounds {
    crash: Duration,
    stop: Duration,
}

/// Tries, and prints what came of it; fails if two ever wrote at once, or nobody in time.
pub async fn run(options: &Options) -> Result<(), String> {
    let lease = Duration::from_secs(options.lease);
    let bounds = Bounds {
        crash: lease + Duration::from_secs(5),
        stop: Duration::from_secs(2),
    };
    if options.against != Against::Reference {
        println!("ours: {}", ours(lease, options.rounds, bounds).await?);
    }
    if options.against != Against::Ours {
        let reference = start_reference().await.map_err(|error| sentence(&error))?;
        println!("reference: {}", on_reference(&reference, lease, options.rounds, bounds).await?);
    }
    Ok(())
}

/// One blow of each kind on each server, as a group of comparisons.
///
/// Nobody promises this machine to be quiet, so times are held against the lease: a stop is told from a crash by being faster
/// than it. That never two write is held to whatever the load.
pub async fn findings(text: &str) -> Vec<Finding> {
    let lease = Duration::from_secs(4);
    let bounds = Bounds { crash: lease * 2 + Duration::from_secs(10), stop: lease };
    let told = |summary: String| println!("leaders: {summary}");
    let (on_ours, on_the_reference) = ("ours: never do two write", "reference: never do two write");
    let mut findings = Vec::new();
    if on_ours.contains(text) {
        findings.push(Finding::check(on_ours, ours(lease, BLOWS, bounds).await.map(told)));
    }
    if on_the_reference.contains(text) {
        findings.push(match start_reference().await {
            Err(error @ Error::NoGo) => Finding::skipped(on_the_reference, error.to_string()),
            Err(error) => Finding::check(on_the_reference, Err(sentence(&error))),
            Ok(reference) => {
                let tried = on_reference(&reference, lease, BLOWS, bounds).await;
                Finding::check(on_the_reference, tried.map(told))
            }
        });
    }
    findings
}

async fn ours(lease: Duration, rounds: usize, bounds: Bounds) -> Result<String, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = ApiServer::start(Store::memory()).await.map_err(|error| sentence(&error))?;
    let authority = Arc::new(Authority::generate().map_err(|error| sentence(&error))?);
    let config = serve::Config {
        address: ([127, 0, 0, 1], 0).into(),
        hosts: Vec::new(),
        authority: authority.clone(),
    };
    let serving = serve(server, config).await.map_err(|error| sentence(&error))?;
    let file = directory.path().join("kubeconfig");
    kubeconfig::write(&file, &authority, &serving.url()).map_err(|error| sentence(&error))?;
    let mut trial = Trial::start(&file, serving.address(), lease).await?;
    let times = trial.rounds(rounds).await?;
    trial.record.check()?;
    within(&times, bounds)?;
    Ok(format!("{times}, {} writes, never by two at once", trial.record.writes()))
}

async fn start_reference() -> Result<Reference, Error> {
    Reference::start_with(Setup { audit: Audit::Leadership, ..Setup::default() }).await
}

async fn on_reference(reference: &Reference, lease: Duration, rounds: usize, bounds: Bounds) -> Result<String, String> {
    let file = reference.admin.kubeconfig.clone();
    let port = reference.admin.config.cluster_url.port_u16().ok_or("the reference has a port")?;
    let mut trial = Trial::start(&file, ([127, 0, 0, 1], port).into(), lease).await?;
    let times = trial.rounds(rounds).await?;
    trial.record.check()?;
    let audited = audited(&reference.directory().join("audit.log"))?;
    audited.check()?;
    within(&times, bounds)?;
    Ok(format!("{times}, {} writes in the audit log, never by two at once", audited.writes()))
}

fn within(times: &Times, bounds: Bounds) -> Result<(), String> {
    for (what, longest, bound) in [
        ("a crash or a cut", times.crash, bounds.crash),
        ("a stop", times.stop, bounds.stop),
    ] {
        if longest > bound {
            return Err(format!("{longest:.2?} passed after {what} until another wrote; {bound:?} may"));
        }
    }
    Ok(())
}

fn audited(log: &Path) -> Result<record::Record, String> {
    let text = std::fs::read_to_string(log).map_err(|error| format!("read {}: {error}", log.display()))?;
    record::Record::audited(&text)
}
