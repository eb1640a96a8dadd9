//! The certificate that a port serves: from files, which are read again when they change, self-signed, or issued by an
//! authority of the operator's. Times are the wall clock's, so that a suspend delays no renewal.

use crate::clock::Clock;
use crate::{Error, Result};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::time::sleep;

/// How long a self-signed certificate is valid.
const VALIDITY: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How far clocks may differ.
const BACKDATED: SignedDuration = SignedDuration::from_hours(24);
/// How often files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
/// How often the time is compared with the end of a certificate: a suspend stops timers, and not the wall clock.
pub(crate) const RENEWAL_INTERVAL: Duration = Duration::from_secs(60);

/// A certificate and its key, which change while connections are served.
pub(crate) struct ServingCertificate {
    source: Source,
    current: RwLock<Current>,
}

enum Source {
    Files { certificate: PathBuf, key: PathBuf },
    SelfSigned { names: Vec<String>, clock: Clock },
}

#[derive(Clone)]
struct Current {
    pem: Pem,
    key: Arc<CertifiedKey>,
}

/// A certificate with its key, both in PEM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pem {
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// When it is to be replaced; never by itself, if it comes from files.
    pub(crate) renewal: Option<Timestamp>,
}

impl ServingCertificate {
    /// The certificate in a file, with its chain, and the key in another, both in PEM.
    pub(crate) fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServingCertificate>> {
        ServingCertificate::new(Source::Files { certificate: certificate.into(), key: key.into() })
    }

    /// A new certificate for a server under these names.
    pub(crate) fn self_signed(names: Vec<String>) -> Result<Arc<ServingCertificate>> {
        ServingCertificate::new(Source::SelfSigned { names, clock: Clock::start() })
    }

    fn new(source: Source) -> Result<Arc<ServingCertificate>> {
        let current = RwLock::new(Current::of(source.pem()?)?);
        Ok(Arc::new(ServingCertificate { source, current }))
    }

    /// TLS of a server with this certificate.
    pub(crate) fn server_config(self: &Arc<ServingCertificate>) -> Result<Arc<ServerConfig>> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::permanent)?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Replaces the certificate before it expires, or when its files change. Never ends.
    pub(crate) async fn keep(self: Arc<ServingCertificate>) {
        loop {
            sleep(self.source.interval()).await;
            if let Err(error) = self.renew() {
                tracing::warn!(%error, "the certificate is not replaced; the last one is served");
            }
        }
    }

    fn renew(&self) -> Result<()> {
        match &self.source {
            Source::SelfSigned { clock, .. } if !self.current().pem.is_due(clock.now()) => Ok(()),
            source => self.replace(source.pem()?),
        }
    }

    /// Serves another certificate from now on. One whose key is not its own is refused, and the last one served.
    pub(crate) fn replace(&self, pem: Pem) -> Result<()> {
        if pem == self.current().pem {
            return Ok(());
        }
        let next = Current::of(pem)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        tracing::info!("serving a new certificate");
        Ok(())
    }

    fn current(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current().key)
    }
}

impl std::fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServingCertificate")
    }
}

impl Source {
    fn interval(&self) -> Duration {
        match self {
            Source::Files { .. } => RELOAD_INTERVAL,
            Source::SelfSigned { .. } => RENEWAL_INTERVAL,
        }
    }

    fn pem(&self) -> Result<Pem> {
        match self {
            Source::Files { certificate, key } => Ok(Pem {
                certificate: read(certificate)?,
                key: read(key)?,
                renewal: None,
            }),
            Source::SelfSigned { names, clock } => self_signed(names, clock.now()).map_err(Error::permanent),
        }
    }
}

impl Pem {
    /// Whether it is time to replace it.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.renewal.is_some_and(|renewal| now >= renewal)
    }
}

impl Current {
    /// Refuses a certificate that is none, and a key that is not the certificate's.
    fn of(pem: Pem) -> Result<Current> {
        let refused = |what: &str, error: String| Error::permanent(format!("read the {what} of a port: {error}"));
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| refused("certificate", error.to_string()))?;
        let key =
            PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).map_err(|error| refused("key", error.to_string()))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| refused("certificate and key", error.to_string()))?;
        Ok(Current { pem, key: Arc::new(key) })
    }
}

pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::permanent(format!("read {}: {error}", path.display())))
}

/// What every server's certificate has: its names, and how long it is valid.
pub(crate) fn server_params(
    names: &[String],
    now: Timestamp,
    until: Timestamp,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    if let Some(name) = names.first() {
        params.distinguished_name.push(DnType::CommonName, short(name));
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_validity(&mut params, now, until);
    Ok(params)
}

/// A common name has at most 64 characters; clients look at the other names.
fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Makes a certificate valid from some time ago until a time.
pub(crate) fn set_validity(params: &mut CertificateParams, now: Timestamp, until: Timestamp) {
    let [from, to] = [now - BACKDATED, until].map(|time| {
        let time = time.to_zoned(TimeZone::UTC);
        let (date, day) = (time.date(), time.time().duration_since(jiff::civil::Time::midnight()));
        let date = rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs());
        date + day.unsigned_abs()
    });
    (params.not_before, params.not_after) = (from, to);
}

/// The time after two thirds of a life.
pub(crate) fn two_thirds(from: Timestamp, life: SignedDuration) -> Timestamp {
    from + life / 3 * 2
}

fn self_signed(names: &[String], now: Timestamp) -> Result<Pem, rcgen::Error> {
    let params = server_params(names, now, now + VALIDITY)?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pem {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        renewal: Some(two_thirds(now, VALIDITY)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn served(certificate: &ServingCertificate) -> Vec<u8> {
        certificate.current().key.cert[0].to_vec()
    }

    fn names() -> Vec<String> {
        vec!["greeter".into(), "greeter.default.svc".into()]
    }

    #[tokio::test(start_paused = true)]
    async fn a_self_signed_certificate_is_renewed_at_two_thirds_of_its_life() {
        let certificate = ServingCertificate::self_signed(names()).unwrap();
        let kept = tokio::spawn(certificate.clone().keep());
        let first = served(&certificate);
        sleep(60 * DAY - 2 * RENEWAL_INTERVAL).await;
        assert_eq!(served(&certificate), first);
        sleep(3 * RENEWAL_INTERVAL).await;
        assert_ne!(served(&certificate), first);
        assert!(certificate.server_config().is_ok() && !kept.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_read_again_when_they_change_and_a_wrong_pair_is_not_served() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let pems = [(), (), ()].map(|()| self_signed(&names(), Clock::start().now()).unwrap());
        let write = |certificate: &Pem, key: &Pem| {
            std::fs::write(path("tls.crt"), &certificate.certificate).unwrap();
            std::fs::write(path("tls.key"), &key.key).unwrap();
        };
        write(&pems[0], &pems[1]);
        let refused = ServingCertificate::from_files(&path("tls.crt"), &path("tls.key"))
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("read the certificate and key of a port: "), "{refused}");
        let missing = ServingCertificate::from_files(&path("no.crt"), &path("tls.key")).unwrap_err().to_string();
        assert!(missing.contains("no.crt: No such file"), "{missing}");
        write(&pems[0], &pems[0]);
        let certificate = ServingCertificate::from_files(&path("tls.crt"), &path("tls.key")).unwrap();
        let _kept = tokio::spawn(certificate.clone().keep());
        let first = served(&certificate);
        write(&pems[1], &pems[2]);
        sleep(2 * RELOAD_INTERVAL).await;
        assert_eq!(served(&certificate), first, "half a change");
        write(&pems[2], &pems[2]);
        sleep(2 * RELOAD_INTERVAL).await;
        assert_ne!(served(&certificate), first);
    }
}
