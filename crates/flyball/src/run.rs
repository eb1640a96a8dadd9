//! `flyball::run`: an operator as a program, with its arguments, log, client and signals.

use crate::{Operator, Result};
use clap::{Arg, ArgMatches, Command};
use kube::Client;
use std::io::{IsTerminal, Write};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Runs an operator as its program's arguments say: `run` (or nothing), `crds`, `help`.
///
/// It ends after SIGTERM or SIGINT, once the reconciles under way have ended; a second signal does not wait for them.
pub async fn run(operator: Operator) -> Result<()> {
    let arguments = command(&operator).get_matches();
    match arguments.subcommand() {
        Some(("crds", _)) => print_crds(&operator, &mut std::io::stdout()),
        Some(("run", arguments)) => serve(&operator, arguments).await,
        _ => serve(&operator, &arguments).await,
    }
}

fn command(operator: &Operator) -> Command {
    let log = Arg::new("log")
        .long("log")
        .env("RUST_LOG")
        .default_value("info")
        .help("What to log: a level, or levels by target, as in `info,kube=debug`");
    Command::new("operator")
        .bin_name(operator.name())
        .display_name(operator.name())
        .about(format!("The {} operator", operator.name()))
        .arg(log.clone())
        .subcommand(
            Command::new("run")
                .about("Run the operator; also what happens without a command")
                .arg(log),
        )
        .subcommand(Command::new("crds").about("Print the CustomResourceDefinitions as YAML"))
}

async fn serve(operator: &Operator, arguments: &ArgMatches) -> Result<()> {
    let log = arguments.get_one::<String>("log").expect("it has a default");
    let filter = EnvFilter::try_new(log)?;
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    log.try_init()?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut signalled = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let client = Client::try_default().await?;
    let running = tokio::select! {
        running = operator.start(client) => running?,
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

fn print_crds(operator: &Operator, out: &mut impl Write) -> Result<()> {
    for crd in operator.crds() {
        write!(out, "---\n{}", serde_saphyr::to_string(crd)?)?;
    }
    Ok(())
}
