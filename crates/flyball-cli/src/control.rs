//! The control socket of a data directory: another command asks the running `flyball up` for a backup, one line each way.

use crate::failure::Failure;
use flyball_store::{Backup, Store};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    task::AbortHandle,
    time::timeout,
};

/// Longer than any path that Linux takes (`PATH_MAX` is 4,096 bytes).
const MAX_LINE_BYTES: u64 = 8192;

/// How long a client may take to send its line.
const MAX_LINE_WAIT: Duration = Duration::from_secs(10);

const ASK: &str = "backup ";
const DONE: &str = "done ";

fn socket(data: &Path) -> PathBuf {
    data.join("control")
}

/// The listening control socket; dropping it closes and removes the socket.
pub struct Control {
    socket: PathBuf,
    task: AbortHandle,
}

impl Control {
    /// Listens in a data directory that this process has locked, for processes of the same user.
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
        // Connecting to a socket that was left behind fails, and `backup` then opens the store itself.
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
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    timeout(MAX_LINE_WAIT, BufReader::new(read.take(MAX_LINE_BYTES)).read_line(&mut line)).await??;
    let answer = match line.strip_suffix('\n').and_then(|line| line.strip_prefix(ASK)) {
        Some(file) => match store.backup(file).await {
            Ok(Backup { revision, entries }) => format!("{DONE}{revision} {entries}\n"),
            Err(error) => format!("{}\n", crate::failure::sentence(&Failure::Store(error))),
        },
        None => format!("unknown request: expected \"{ASK}FILE\" in one line of at most {MAX_LINE_BYTES} bytes\n"),
    };
    write.write_all(answer.as_bytes()).await?;
    write.shutdown().await
}

/// Asks the process that runs on a data directory for a backup; `None` if there is no such process.
pub async fn backup(data: &Path, file: &Path) -> Result<Option<Backup>, Failure> {
    let socket = socket(data);
    let Ok(mut stream) = UnixStream::connect(&socket).await else {
        return Ok(None);
    };
    let failed = |source| Failure::Control { path: socket.clone(), source };
    let file = file.to_str().filter(|file| !file.contains('\n')).ok_or(Failure::FileName)?;
    stream.write_all(format!("{ASK}{file}\n").as_bytes()).await.map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut answer).await.map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_without_end_is_refused_after_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let control = Control::listen(directory.path(), Store::memory()).unwrap();
        let mut stream = UnixStream::connect(&control.socket).await.unwrap();
        let endless = vec![b'x'; MAX_LINE_BYTES as usize];

        stream.write_all(&endless).await.unwrap();

        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("unknown request: expected \"backup FILE\""), "{answer}");
    }
}
