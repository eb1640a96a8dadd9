//! `flyball up`: the cluster, the Application operator and its HTTP API in one process, until Ctrl-C.

use crate::{
    audit::AuditOptions, authentication::Authentication, control::Control, etcd::EtcdOptions, failure::Failure, home,
};
use application::http_api::HttpApi;
use clap::Args;
use flyball::Election;
use flyball_apiserver::{
    ServerOptions,
    authn::{identity::Authority, kubeconfig, token_keys::TokenKeys},
    http::serve::{Config, Serving, serve},
};
use flyball_cluster::{Cluster, StartError};
use flyball_host::limits;
use flyball_store::Store;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Runs a Kubernetes cluster and the Application operator in this process, until Ctrl-C.
///
/// kubectl and other clients use it through the kubeconfig that it writes. The operator's HTTP API listens on HOST and PORT,
/// by default 127.0.0.1 and 3000, and serves requests to localhost, to HOST and to the names in ALLOWED_HOSTS.
#[derive(Args)]
pub struct Up {
    /// Keep the cluster in memory: it is lost when the process stops
    #[arg(long, conflicts_with_all = ["data", "endpoints"])]
    memory: bool,
    /// The data directory; with --etcd it holds the certificate authority only [default: ~/.local/share/flyball]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The port of the API server; 0 chooses a free one
    #[arg(long, default_value_t = 6443)]
    port: u16,
    /// The kubeconfig to write [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Built-in admission plugins that are not asked
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    #[command(flatten)]
    authentication: Authentication,
    #[command(flatten)]
    etcd: EtcdOptions,
    #[command(flatten)]
    audit: AuditOptions,
}

impl Up {
    /// Starts everything, reports the addresses, and stops in order on Ctrl-C or SIGTERM.
    pub async fn run(self) -> Result<(), Failure> {
        limits::raise_open_files();
        let data = if self.memory {
            None
        } else {
            Some(self.data.clone().map_or_else(home::data, Ok)?)
        };
        let (store, authority) = self.open(data.as_deref()).await?;
        // On etcd other processes may write too, and etcd has its own backups.
        let control = match &data {
            Some(data) if !self.etcd.is_wanted() => Some(Control::listen(data, store.clone())?),
            _ => None,
        };
        let authority = Arc::new(authority);
        let token_keys = match &data {
            Some(data) => TokenKeys::open(&data.join("authority"))?,
            None => TokenKeys::generate(),
        };
        let mut options = ServerOptions {
            disabled_admission_plugins: self.disable_admission_plugins.clone(),
            token_keys: Some(Arc::new(token_keys)),
            root_ca: Some(authority.certificate().to_owned()),
            ..ServerOptions::default()
        };
        self.audit.set(&mut options)?;
        self.authentication.add_to(&mut options)?;
        let server = options.start(store).await;
        let server = server.map_err(|status| StartError::Serve(status.message.clone()))?;
        let cluster = Cluster::builder().heartbeats(true).over(server).await?;
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let config = Config { address, hosts: Vec::new(), authority: authority.clone() };
        let serving = serve(cluster.api_server().clone(), config).await?;
        let http_api = HttpApi::listen().await.map_err(Failure::Operator)?;
        // All ports are bound: a start that fails before here leaves the kubeconfig of another process alone.
        let kubeconfig = match (&self.kubeconfig, &data) {
            (Some(file), _) => file.clone(),
            (None, Some(data)) => data.join("kubeconfig"),
            (None, None) => home::temporary_kubeconfig(serving.address().port())?,
        };
        kubeconfig::write(&kubeconfig, &authority, &serving.url())?;
        let report = report(&serving, &self.storage(data.as_deref()), &kubeconfig, http_api.address());
        let operator = application::operator().task("http", move |client| http_api.clone().serve(client));
        // On etcd another `flyball up` may run the same operator.
        let operator = match self.etcd.is_wanted() {
            true => {
                let election = Election::new(operator.name()).namespace("default");
                operator.election(election)
            }
            false => operator,
        };
        let running = operator.start(cluster.client()).await.map_err(Failure::Operator)?;
        println!("{report}");
        stopped().await?;
        println!("stopping");
        drop(control);
        running.stop().await;
        serving.stop().await;
        cluster.stop().await;
        Ok(())
    }

    async fn open(&self, data: Option<&Path>) -> Result<(Store, Authority), Failure> {
        let Some(data) = data else {
            return Ok((Store::memory(), Authority::generate()?));
        };
        home::prepare(data)?;
        let store = match self.etcd.is_wanted() {
            true => self.etcd.open().await?,
            false => Store::open(data.join("store")).await?,
        };
        Ok((store, Authority::open(&data.join("authority"))?))
    }

    /// Where the cluster is stored, for the report.
    fn storage(&self, data: Option<&Path>) -> String {
        match data {
            Some(_) if self.etcd.is_wanted() => format!("stored on {}", self.etcd.place()),
            Some(data) => format!("stored in {}", home::show(data)),
            None => "in memory".to_owned(),
        }
    }
}

fn report(serving: &Serving, storage: &str, kubeconfig: &Path, http_api: SocketAddr) -> String {
    let (version, kubeconfig) = (flyball_apiserver::version::git_version(), home::show(kubeconfig));
    format!(
        "\
cluster     {url}  Kubernetes {version}, {storage}
operator    Application, http://{http_api}
kubeconfig  {kubeconfig}

Next, in another terminal:
  export KUBECONFIG={kubeconfig}
  kubectl apply -f operators/application/example.yaml
  kubectl get applications --watch

Ctrl-C stops everything.",
        url = serving.url(),
    )
}

/// Waits for Ctrl-C or SIGTERM.
async fn stopped() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::Signal)?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::Signal),
        _ = terminate.recv() => Ok(()),
    }
}
