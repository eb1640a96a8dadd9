//! The `flyball` command.

mod audit;
mod authentication;
mod backup;
mod control;
mod etcd;
mod failure;
mod home;
mod up;

use clap::{Parser, Subcommand};
use failure::sentence;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Kubernetes operators in Rust, and a cluster to run them in.
#[derive(Parser)]
#[command(name = "flyball", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a Kubernetes cluster and the Application operator in this process
    Up(Box<up::Up>),
    /// Write a consistent snapshot of a cluster, running or not, to one file
    Backup(backup::Backup),
    /// Create a data directory from such a file
    Restore(backup::Restore),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    flyball_host::private::restrict_new_files();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let done = match arguments.command {
        Command::Up(up) => up.run().await,
        Command::Backup(backup) => backup.run().await,
        Command::Restore(restore) => restore.run().await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("flyball: {}", sentence(&failure));
            ExitCode::FAILURE
        }
    }
}
