//! `flyball backup` and `flyball restore`: a cluster as one file, and a cluster of that file.

use crate::{control, etcd::EtcdOptions, failure::Failure, home};
use clap::Args;
use flyball_store::{Backup as Written, Store};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Writes everything that a cluster keeps into one file, as of one moment, and verifies the file.
///
/// A cluster that runs goes on meanwhile: `flyball up` on the same data directory writes the file itself. What identifies
/// the cluster, DIR/authority, is not in the file; copy it too if its clients and tokens are to be trusted after a restore.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flyball backup monday.backup                       the cluster in ~/.local/share/flyball
  flyball backup monday.backup --data /var/flyball   another one
  flyball backup monday.backup --etcd http://localhost:2379

A file of that name is replaced, and only by a whole one. A cluster that was started with --memory has none.
Exit code: 0 the file is whole, 1 it could not be written, 2 bad arguments.")]
pub struct Backup {
    /// The file to write
    file: PathBuf,
    /// The directory that the cluster is kept in [default: ~/.local/share/flyball]
    #[arg(long, value_name = "DIR", conflicts_with = "endpoints")]
    data: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdOptions,
}

/// Makes a data directory of a file that `flyball backup` wrote.
///
/// The cluster in it is as it was, and every client reads it anew. The file is verified first; where anything is wrong with
/// it, or with the directory, nothing is changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  flyball restore monday.backup --data /var/restored
  flyball up --data /var/restored

A backup of a cluster on etcd may be restored into a directory too. To put one back onto etcd, use etcd's own snapshots.
Exit code: 0 the cluster is there, 1 it could not be restored, 2 bad arguments.")]
pub struct Restore {
    /// The file to read
    file: PathBuf,
    /// The directory to keep the cluster in; there must be no cluster in it
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

impl Backup {
    /// Writes the file, or asks who has the directory open to write it.
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
    /// Makes the directory.
    pub async fn run(self) -> Result<(), Failure> {
        let store = self.data.join("store");
        let written = Store::restore(&self.file, &store).await?;
        let place = home::show(&self.data);
        println!("{}", report("restored", &written, &format!("into {place}"), &self.file));
        println!("Next: flyball up --data {place}");
        Ok(())
    }
}

/// Backs up a cluster that does not run; makes none where there is none.
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

/// The path as another process sees it.
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
