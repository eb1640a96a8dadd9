//! `flyball backup` and `flyball restore`: write a cluster to one file, and create a data directory from that file.

use crate::{control, etcd::EtcdOptions, failure::Failure, home};
use clap::Args;
use flyball_store::{Backup as Written, Store};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Writes a consistent snapshot of a cluster to one file, and verifies the file.
///
/// A running cluster stays available: `flyball up` on the same data directory writes the file. The file does not contain the
/// certificate authority; copy DIR/authority too if existing kubeconfigs must work after a restore.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flyball backup monday.backup                       the cluster in ~/.local/share/flyball
  flyball backup monday.backup --data /var/flyball   the cluster in another directory
  flyball backup monday.backup --etcd http://localhost:2379

An existing file is replaced when the new one is complete. A cluster that was started with --memory has no backup.
Exit code: 0 written and verified, 1 failed, 2 invalid arguments.")]
pub struct Backup {
    /// The file to write
    file: PathBuf,
    /// The data directory of the cluster [default: ~/.local/share/flyball]
    #[arg(long, value_name = "DIR", conflicts_with = "endpoints")]
    data: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdOptions,
}

/// Creates a data directory from a file that `flyball backup` wrote.
///
/// The file is verified first. If the file or the directory is invalid, nothing is changed. Clients of the cluster list again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flyball restore monday.backup --data /var/restored
  flyball up --data /var/restored

A backup of a cluster on etcd can be restored into a directory. To restore into etcd, use etcd's own snapshots.
Exit code: 0 restored, 1 failed, 2 invalid arguments.")]
pub struct Restore {
    /// The file to read
    file: PathBuf,
    /// The data directory to create; it must not contain a cluster
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

impl Backup {
    /// Writes the file, or asks the process that has the directory open to write it.
    pub async fn run(self) -> Result<(), Failure> {
        let file = absolute(&self.file)?;
        let written = if self.etcd.is_wanted() {
            self.etcd.open().await?.backup(&file).await?
        } else {
            let data = self.data.map_or_else(home::data, Ok)?;
            match control::backup(&data, &file).await? {
                Some(written) => written,
                None => of_directory(&data, &file).await?,
            }
        };
        println!("{}", report("backed up", &written, &format!("to {}", home::show(&self.file)), &file));
        Ok(())
    }
}

impl Restore {
    /// Creates the directory.
    pub async fn run(self) -> Result<(), Failure> {
        let store = self.data.join("store");
        let written = Store::restore(&self.file, &store).await?;
        let place = home::show(&self.data);
        println!("{}", report("restored", &written, &format!("into {place}"), &self.file));
        println!("Next: flyball up --data {place}");
        Ok(())
    }
}

/// Backs up a cluster that is not running; creates nothing if there is no cluster.
async fn of_directory(data: &Path, file: &Path) -> Result<Written, Failure> {
    let path = data.join("store");
    if !path.exists() {
        return Err(Failure::NoCluster { path: data.to_owned() });
    }
    let store = Store::open(path).await?;
    let written = store.backup(file).await;
    store.close().await;
    Ok(written?)
}

/// The absolute path, which does not depend on the working directory of the process that writes it.
fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    let here = env::current_dir().map_err(|source| Failure::Read { path: ".".into(), source })?;
    Ok(here.join(file))
}

fn report(done: &str, written: &Written, place: &str, file: &Path) -> String {
    let Written { revision, entries } = written;
    let size = fs::metadata(file).map_or(0.0, |metadata| metadata.len() as f64 / 1_048_576.0);
    let plural = if *entries == 1 { "" } else { "s" };
    format!("{done} {entries} object{plural} at revision {revision} {place} ({size:.1} MiB, verified)")
}
