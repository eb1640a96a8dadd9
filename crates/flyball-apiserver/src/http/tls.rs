//! TLS for the server: its own certificate, and the certificates of clients.

use crate::authn::identity::{Authority, AuthorityError, Credential};
use crate::authn::x509::ClientCertificate;
use crate::clock::Clock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use std::sync::Arc;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate for the server.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A certificate or key is none.
    #[error("read a certificate")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The library refuses a certificate.
    #[error("use a certificate")]
    Rustls(#[from] rustls::Error),
    /// The authority cannot be trusted.
    #[error("trust the certificate authority")]
    Trust(#[from] rustls::server::VerifierBuilderError),
}

/// A server's side of TLS.
pub struct Tls {
    /// What the connection is made with.
    pub config: Arc<ServerConfig>,
    trust: Arc<dyn ClientCertVerifier>,
    clock: Clock,
}

impl Tls {
    /// TLS for a server under these names and addresses.
    pub fn new(authority: &Authority, hosts: &[String]) -> Result<Tls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate().as_bytes())?)?;
        let trust = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let Credential { certificate, key } = authority.server(hosts)?;
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyCertificate(trust.clone())))
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), trust, clock: Clock::start() })
    }

    /// The certificate that a client presented, to be verified with each of its requests.
    pub fn client_certificate(&self, presented: Option<&[CertificateDer<'_>]>) -> Option<ClientCertificate> {
        ClientCertificate::new(presented?, self.trust.clone())
    }

    /// Whether a client certificate is valid now.
    pub fn trusts(&self, certificate: &ClientCertificate) -> bool {
        certificate.verify(self.clock.now()).is_ok()
    }
}

/// Accepts any certificate whose key the client holds: requests with one that is not trusted are answered with 401.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
