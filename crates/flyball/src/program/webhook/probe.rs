//! Whether the webhooks answer, asked as an API server does: over TLS, by the name and with the certificates that it uses.

use crate::clock::Clock;
use crate::{Error, Result};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    time_provider::TimeProvider,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use tokio_rustls::TlsConnector;

const TIMEOUT: Duration = Duration::from_secs(10);
/// As much of the answer as is read.
const MAX_ANSWER: u64 = 4096;

/// Asks `/healthz` of the server at the other end of a stream.
pub(crate) async fn probe(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    bundle: &str,
    clock: Clock,
) -> Result<()> {
    let asked = async {
        let name = ServerName::try_from(host.to_owned()).map_err(Error::permanent)?;
        let mut stream = TlsConnector::from(client_config(bundle, clock)?).connect(name, stream).await?;
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
        match answer.starts_with(b"HTTP/1.1 200 ") {
            true => Ok(()),
            false => {
                let answer = String::from_utf8_lossy(&answer);
                Err(Error::retry(format!("answered {}", answer.lines().next().unwrap_or_default())))
            }
        }
    };
    timeout(TIMEOUT, asked).await?
}

fn client_config(bundle: &str, clock: Clock) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.map_err(Error::permanent)?).map_err(Error::permanent)?;
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(WallClock(clock)))
        .with_safe_default_protocol_versions()
        .map_err(Error::permanent)?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The operator's clock, for the validity of certificates.
#[derive(Debug)]
struct WallClock(Clock);

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
