//! `flyball::run`: an operator as a program, with its arguments, log, client and signals.

use crate::program::manifests::to_yaml;
use crate::program::{args, log};
use crate::{Config, Error, Manifests, Operator, Result};
use clap::{ArgMatches, error::ErrorKind as Refusal};
use kube::api::DynamicObject;
use std::io::{ErrorKind, Write};
use tokio::signal::unix::{SignalKind, signal};

/// Runs an operator as its program's arguments say: `run` (or nothing), `crds`, `rbac`, `manifests`, `help`.
///
/// Its configuration is put together from flags, environment and file; see [`Config`]. It ends after SIGTERM or SIGINT, once
/// the reconciles under way have ended; a second signal does not wait for them. Wrong arguments and a wrong configuration end
/// the process with exit code 2 and a message.
pub async fn run(operator: Operator) -> Result<()> {
    let arguments = args::command(&operator).get_matches();
    match arguments.subcommand() {
        Some(("crds", _)) => print(&Manifests::of(&operator).crds()?),
        Some(("rbac", arguments)) => {
            operator.check()?;
            print(&args::manifests(&operator, arguments).rbac())
        }
        Some(("manifests", arguments)) => {
            operator.check()?;
            let image = arguments.get_one::<String>("image").expect("it is required");
            print(&args::manifests(&operator, arguments).all(image)?)
        }
        Some(("run", arguments)) => serve(&operator, &configured(&operator, arguments)).await,
        _ => serve(&operator, &configured(&operator, &arguments)).await,
    }
}

/// The configuration; a wrong one ends the process as a wrong argument does.
fn configured(operator: &Operator, arguments: &ArgMatches) -> Config {
    let config = args::config(arguments, |name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()));
    config.unwrap_or_else(|error| args::command(operator).error(Refusal::ValueValidation, error).exit())
}

/// Works until it is told to end; then what was traced is sent.
async fn serve(operator: &Operator, config: &Config) -> Result<()> {
    let traces = log::start(config, operator.name())?;
    let ended = work(operator, config).await;
    if let Some(traces) = traces {
        traces.end().await;
    }
    ended
}

async fn work(operator: &Operator, config: &Config) -> Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut signalled = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let cluster = kube::Config::infer().await.map_err(|error| {
        Error::permanent(format!(
            "find a cluster: {error}; set KUBECONFIG to the kubeconfig of one, `flyball up` writes its own"
        ))
    })?;
    tracing::info!(operator = operator.name(), cluster = %cluster.cluster_url, "starting");
    let running = tokio::select! {
        running = operator.start_on(cluster, config) => running?,
        () = signalled() => return Ok(()),
    };
    tracing::info!(operator = operator.name(), "running");
    signalled().await;
    tracing::info!(operator = operator.name(), "stopping");
    tokio::select! {
        () = running.stop() => {}
        () = signalled() => tracing::warn!("stopped before the reconciles under way had ended"),
    }
    Ok(())
}

fn print(objects: &[DynamicObject]) -> Result<()> {
    match std::io::stdout().write_all(to_yaml(objects)?.as_bytes()) {
        // Whoever reads it has read enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
