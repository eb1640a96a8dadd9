//! Client certificates: a connection presents one, and each request on it is authenticated by it.

use crate::authn::user::User;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a verification holds; certificates that expire meanwhile are accepted for that much longer.
const VERIFICATION_HOLDS: SignedDuration = SignedDuration::from_secs(10);

/// The certificate that a client presented in the TLS handshake; an extension of its requests.
#[derive(Clone)]
pub struct ClientCertificate(Arc<Presented>);

struct Presented {
    chain: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
    /// The last verification, and when it was made.
    verified: Mutex<Option<(Timestamp, Result<User, CertificateError>)>>,
}

/// Why a certificate proves no user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The certificate authority did not issue it, or it is not valid at this time.
    #[error("{0}")]
    Untrusted(String),
    /// It names no user.
    #[error("its subject has no common name")]
    NoUser,
}

impl ClientCertificate {
    /// The certificate that a client presented, leaf first; none if it presented none.
    pub fn new(chain: &[CertificateDer<'_>], verifier: Arc<dyn ClientCertVerifier>) -> Option<ClientCertificate> {
        let chain: Vec<_> = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        (!chain.is_empty())
            .then(|| ClientCertificate(Arc::new(Presented { chain, verifier, verified: Mutex::default() })))
    }

    /// The user that it proves at that time. Signatures are checked anew every ten seconds, not for every request.
    pub fn verify(&self, now: Timestamp) -> Result<User, CertificateError> {
        let mut verified = self.0.verified.lock().expect("no panic while held");
        if let Some((at, result)) = &*verified
            && now.duration_since(*at).abs() < VERIFICATION_HOLDS
        {
            return result.clone();
        }
        let result = self.0.check(now);
        *verified = Some((now, result.clone()));
        result
    }
}

impl Presented {
    fn check(&self, now: Timestamp) -> Result<User, CertificateError> {
        let Some((leaf, intermediates)) = self.chain.split_first() else {
            return Err(CertificateError::NoUser);
        };
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().unsigned_abs()));
        let trusted = self.verifier.verify_client_cert(leaf, intermediates, now);
        trusted.map_err(|error| CertificateError::Untrusted(error.to_string()))?;
        User::of(leaf).ok_or(CertificateError::NoUser)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::identity::Authority;
    use crate::http::tls::Tls;
    use rustls::pki_types::pem::PemObject;

    #[tokio::test]
    async fn a_certificate_that_expires_during_a_connection_is_refused() {
        let (authority, ada) = (Authority::generate().unwrap(), User::new("ada", ["staff"]));
        let credential = authority.client(&ada).unwrap();
        let presented = [CertificateDer::from_pem_slice(credential.certificate.as_bytes()).unwrap()];
        let tls = Tls::new(&authority, &[]).unwrap();
        let certificate = tls.client_certificate(Some(&presented)).unwrap();
        let now = flyball_host::Clock::start().now();

        assert_eq!(certificate.verify(now), Ok(ada));

        let after_expiry = now + SignedDuration::from_hours(24 * 365 * 11);
        assert!(matches!(certificate.verify(after_expiry), Err(CertificateError::Untrusted(_))));
    }
}
