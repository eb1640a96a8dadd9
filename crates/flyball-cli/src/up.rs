//! `flyball up`: the cluster, the Application operator and its HTTP face in one process, until Ctrl-C.

use crate::{control::Control, etcd::EtcdOptions, failure::Failure, home};
use clap::Args;
use flyball_apiserver::{
    authn::{identity::Authority, kubeconfig},
    http::serve::{Config, Serving, serve},
};
use flyball_cluster::Cluster;
use flyball_store::Store;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Runs a Kubernetes cluster and the Application operator in this process, until Ctrl-C.
///
/// kubectl and every other client use it through the kubeconfig that it writes. The operator's HTTP face listens on PORT,
/// 3000 unless set.
#[derive(Args)]
pub struct Up {
    /// Keep nothing: the cluster is gone when it stops
    #[arg(long, conflicts_with_all = ["data", "endpoints"])]
    memory: bool,
    /// The directory that the cluster, or on etcd what identifies it, is kept in [default: ~/.local/share/flyball]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The port of the API server; 0 takes any that is free
    #[arg(long, default_value_t = 6443)]
    port: u16,
    /// Where to write the kubeconfig [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdOptions,
}

impl Up {
    /// Starts everything, says what was started, and stops it all in order when asked to.
    pub async fn run(self) -> Result<(), Failure> {
        let data = if self.memory {
            None
        } else {
            Some(self.data.map_or_else(home::data, Ok)?)
        };
        let (store, authority) = match &data {
            Some(data) if self.etcd.is_wanted() => (self.etcd.open().await?, Authority::open(&data.join("authority"))?),
            Some(data) => (Store::open(data.join("store")).await?, Authority::open(&data.join("authority"))?),
            None => (Store::memory(), Authority::generate()?),
        };
        // On etcd others may write too, and a backup is taken there.
        let control = match &data {
            Some(data) if !self.etcd.is_wanted() => Some(Control::listen(data, store.clone())?),
            _ => None,
        };
        let authority = Arc::new(authority);
        let cluster = Cluster::start(store).await?;
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let config = Config { address, hosts: Vec::new(), authority: authority.clone() };
        let serving = serve(cluster.api_server().clone(), config).await?;
        let default = || match &data {
            Some(data) => data.join("kubeconfig"),
            None => home::temporary_kubeconfig(serving.address().port()),
        };
        let file = self.kubeconfig.clone().unwrap_or_else(default);
        kubeconfig::write(&file, &authority, &serving.url())?;
        let face = application::face::address().map_err(Failure::Operator)?;
        drop(application::face::listen().await.map_err(Failure::Operator)?);
        let operator = application::operator().task("http", application::face::run);
        let running = operator.start(cluster.client()).await.map_err(Failure::Operator)?;
        let kept = match &data {
            Some(_) if self.etcd.is_wanted() => format!("kept on {}", self.etcd.place()),
            Some(data) => format!("kept in {}", home::show(data)),
            None => "in memory: nothing is kept".to_owned(),
        };
        println!("{}", report(&serving, &kept, &file, face));
        stopped().await?;
        println!("stopping");
        drop(control);
        running.stop().await;
        cluster.stop().await;
        serving.stop().await;
        Ok(())
    }
}

fn report(serving: &Serving, kept: &str, kubeconfig: &Path, face: SocketAddr) -> String {
    let (version, kubeconfig) = (flyball_apiserver::version::git_version(), home::show(kubeconfig));
    format!(
        "\
cluster     {url}  Kubernetes {version}, {kept}
operator    Application, http://{face}
kubeconfig  {kubeconfig}

Next, in another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl apply -f operators/application/example.yaml
  kubectl get applications --watch

Ctrl-C stops everything.",
        url = serving.url(),
    )
}

/// Waits for Ctrl-C, or for whoever started us to ask for an end.
async fn stopped() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::Signal)?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::Signal),
        _ = terminate.recv() => Ok(()),
    }
}
