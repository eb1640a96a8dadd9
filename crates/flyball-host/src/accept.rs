//! Accepts connections. Errors of one connection are skipped; a lack of file descriptors or memory is waited out.

use std::{io, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The next connection. It fails never: the caller stops listening by dropping the listener.
pub async fn next(listener: &TcpListener) -> TcpStream {
    let mut backoff = MIN_BACKOFF;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if backoff == MIN_BACKOFF {
                    tracing::warn!(%error, "connections are not accepted for now");
                }
                sleep(backoff).await;
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
