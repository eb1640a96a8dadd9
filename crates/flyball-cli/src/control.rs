//! How a running `flyball up` is asked for something by another command on the same data directory: a line each way over a
//! socket in it.

use crate::failure::Failure;
use flyball_store::{Backup, Store};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    task::AbortHandle,
};

const ASK: &str = "backup ";
const DONE: &str = "done ";

fn socket(data: &Path) -> PathBuf {
    data.join("control")
}

/// Answers for as long as it is kept; then nobody is found in the data directory.
pub struct Control {
    socket: PathBuf,
    task: AbortHandle,
}

impl Control {
    /// Listens in a data directory that only this process may use, for those who may write to it.
    pub fn listen(data: &Path, store: Store) -> Result<Control, Failure> {
        let socket = socket(data);
        let listener = bind(&socket).map_err(|source| Failure::Control { path: socket.clone(), source })?;
        let serving = async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, store.clone()));
            }
        };
        Ok(Control { socket, task: tokio::spawn(serving).abort_handle() })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
        // Whoever finds it all the same is told that nobody listens.
        fs::remove_file(&self.socket).ok();
    }
}

fn bind(socket: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn answer(stream: UnixStream, store: Store) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let answer = match line.trim_end_matches('\n').strip_prefix(ASK) {
        Some(file) => match store.backup(file).await {
            Ok(Backup { revision, entries }) => format!("{DONE}{revision} {entries}\n"),
            Err(error) => format!("{}\n", crate::failure::sentence(&Failure::Store(error))),
        },
        None => "it was asked for something that it does not know\n".to_owned(),
    };
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// Asks who runs on a data directory for a backup; `None` where nobody does.
pub async fn backup(data: &Path, file: &Path) -> Result<Option<Backup>, Failure> {
    let socket = socket(data);
    let Ok(mut stream) = UnixStream::connect(&socket).await else {
        return Ok(None);
    };
    let failed = |source| Failure::Control { path: socket.clone(), source };
    let file = file.to_str().filter(|file| !file.contains('\n')).ok_or(Failure::FileName)?;
    stream.write_all(format!("{ASK}{file}\n").as_bytes()).await.map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await.map_err(failed)?;
    match answer.trim_end().strip_prefix(DONE).and_then(read) {
        Some(backup) => Ok(Some(backup)),
        None if answer.is_empty() => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        None => Err(Failure::Refused(answer.trim_end().to_owned())),
    }
}

fn read(text: &str) -> Option<Backup> {
    let (revision, entries) = text.split_once(' ')?;
    Some(Backup {
        revision: revision.parse().ok()?,
        entries: entries.parse().ok()?,
    })
}
