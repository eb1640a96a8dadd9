//! One replica, as a process of its own: an operator that writes all the time, also beside its reconciles.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flyball::{Action, Config, Context, Controller, Election, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

/// Who this replica is, and how long it may lead.
#[derive(clap::Args)]
pub struct Options {
    /// How the server is reached
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Who this is
    #[arg(long)]
    identity: String,
    /// The lease duration in milliseconds
    #[arg(long)]
    lease: u64,
}

/// Runs until SIGTERM, or until whoever started it is gone.
pub async fn run(options: &Options) -> Result<()> {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let kubeconfig = Kubeconfig::read_from(&options.kubeconfig)?;
    let cluster = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let mut config = Config::default();
    (config.metrics.enabled, config.health.enabled) = (false, false);
    let mut terminate = signal(SignalKind::terminate())?;
    let running = operator(options).config(&config).start(cluster).await?;
    let (mut stdin, mut byte) = (tokio::io::stdin(), [0]);
    tokio::select! {
        _ = terminate.recv() => running.stop().await,
        _ = stdin.read(&mut byte) => std::process::exit(0),
    }
    std::process::exit(0)
}

fn operator(options: &Options) -> Operator {
    let lease = Duration::from_millis(options.lease);
    let election = Election::new("writer")
        .identity(&options.identity)
        .lease_duration(lease)
        .renew_deadline(lease * 2 / 3)
        .retry_period(lease * 2 / 15);
    let (identity, begun) = (options.identity.clone(), Arc::new(AtomicBool::new(false)));
    let reconcile = move |_: Arc<Secret>, ctx: Context| {
        let (identity, begun) = (identity.clone(), begun.clone());
        async move {
            if !begun.swap(true, Ordering::SeqCst) {
                tokio::spawn(write_on(ctx.client(), identity.clone()));
            }
            write(&ctx.client(), &identity).await?;
            Result::Ok(Action::requeue_after(Duration::from_millis(5)))
        }
    };
    Operator::new("writer").election(election).controller(Controller::new(reconcile))
}

/// Goes on whoever leads: only the fence keeps it from writing.
async fn write_on(client: kube::Client, identity: String) {
    loop {
        if let Err(error) = write(&client, &identity).await {
            eprintln!("{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn write(client: &kube::Client, identity: &str) -> kube::Result<ConfigMap> {
    let api = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({ "data": { "writer": identity, "id": uuid() } }));
    let params = PatchParams {
        field_manager: Some(identity.to_owned()),
        ..PatchParams::default()
    };
    api.patch("target", &params, &patch).await
}

/// Another each time, so that every write changes something.
fn uuid() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}
