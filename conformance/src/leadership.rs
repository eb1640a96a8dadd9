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
use flyball_apiserver::identity::Authority;
use flyball_apiserver::kubeconfig;
use flyball_apiserver::serve::{self, serve};
use flyball_store::Store;

use crate::reference::{Audit, Reference, Setup};
use crate::report::sentence;
use trial::Trial;

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

/// Tries, and prints what came of it; fails if two ever wrote at once, or nobody in time.
pub async fn run(options: &Options) -> Result<(), String> {
    if options.against != Against::Reference {
        println!("ours: {}", ours(options).await?);
    }
    if options.against != Against::Ours {
        println!("reference: {}", reference(options).await?);
    }
    Ok(())
}

async fn ours(options: &Options) -> Result<String, String> {
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
    let mut trial = Trial::start(&file, serving.address(), lease(options)).await?;
    let summary = trial.rounds(options.rounds).await?;
    trial.record.check()?;
    Ok(summary)
}

async fn reference(options: &Options) -> Result<String, String> {
    let setup = Setup { audit: Audit::Leadership, ..Setup::default() };
    let reference = Reference::start_with(setup).await.map_err(|error| sentence(&error))?;
    let file = reference.admin.kubeconfig.clone();
    let port = reference.admin.config.cluster_url.port_u16().ok_or("the reference has a port")?;
    let mut trial = Trial::start(&file, ([127, 0, 0, 1], port).into(), lease(options)).await?;
    let summary = trial.rounds(options.rounds).await?;
    trial.record.check()?;
    let audited = audited(&reference.directory().join("audit.log"))?;
    audited.check()?;
    Ok(format!("{summary}; the audit log has {} writes", audited.writes()))
}

fn audited(log: &Path) -> Result<record::Record, String> {
    let text = std::fs::read_to_string(log).map_err(|error| format!("read {}: {error}", log.display()))?;
    record::Record::audited(&text)
}

fn lease(options: &Options) -> Duration {
    Duration::from_secs(options.lease)
}
