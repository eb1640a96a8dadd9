//! Who is who: the certificate authority of a cluster, what it signs, and the user that a client certificate names.
//! Only the authority is kept on disk; everything it signs is made anew at each start and trusted because of it.

mod subject;

use crate::clock::Clock;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use std::io;
use std::path::{Path, PathBuf};

pub use crate::authn::user::User;

/// The certificate authority of a cluster.
pub struct Authority {
    certificate: String,
    key: KeyPair,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Credential {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// Why there is no certificate authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The key on disk is none.
    #[error("{} holds no private key: delete the directory to have a new one made, and write the kubeconfig again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rcgen::Error,
    },
    /// A certificate could not be made.
    #[error("make a certificate")]
    Sign(#[from] rcgen::Error),
}

impl Authority {
    /// A new authority that nobody trusts yet.
    pub fn generate() -> Result<Authority, AuthorityError> {
        let key = KeyPair::generate()?;
        let certificate = authority_params(Clock::start().now()).self_signed(&key)?.pem();
        Ok(Authority { certificate, key })
    }

    /// The authority kept in a directory; a new one if there is none.
    pub fn open(directory: &Path) -> Result<Authority, AuthorityError> {
        let (certificate_path, key_path) = (directory.join("ca.crt"), directory.join("ca.key"));
        if !key_path.exists() {
            let authority = Authority::generate()?;
            std::fs::create_dir_all(directory)
                .map_err(|source| AuthorityError::Write { path: directory.to_owned(), source })?;
            write(&certificate_path, &authority.certificate)?;
            write(&key_path, &authority.key.serialize_pem())?;
            return Ok(authority);
        }
        let certificate = read(&certificate_path)?;
        let key = KeyPair::from_pem(&read(&key_path)?)
            .map_err(|source| AuthorityError::Damaged { path: key_path, source })?;
        Ok(Authority { certificate, key })
    }

    /// The authority's own certificate, in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for a server under these names and addresses.
    pub fn server(&self, hosts: &[String]) -> Result<Credential, AuthorityError> {
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name = names("kube-apiserver", &[]);
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a user.
    pub fn client(&self, user: &User) -> Result<Credential, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = names(&user.name, &user.groups);
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Credential, AuthorityError> {
        let now = Clock::start().now();
        valid(&mut params, now);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let issuer = authority_params(now);
        let certificate = params.signed_by(&key, &Issuer::from_params(&issuer, &self.key))?;
        Ok(Credential { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl User {
    /// The user that a certificate names; none if it is no certificate or names nobody.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<User> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        subject::user(certificate.subject())
    }
}

fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = names("flyball", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    valid(&mut params, now);
    params
}

fn names(common_name: &str, organizations: &[String]) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    for organization in organizations {
        names.push(DnType::OrganizationName, organization.as_str());
    }
    names.push(DnType::CommonName, common_name);
    names
}

/// Valid for ten years from yesterday: clocks differ.
fn valid(params: &mut CertificateParams, now: Timestamp) {
    let yesterday = (now - jiff::SignedDuration::from_hours(24)).to_zoned(jiff::tz::TimeZone::UTC);
    let date = |year: i16| {
        let (month, day) = (yesterday.month().unsigned_abs(), yesterday.day().unsigned_abs().min(28));
        rcgen::date_time_ymd(i32::from(year), month, day)
    };
    params.not_before = date(yesterday.year());
    params.not_after = date(yesterday.year() + 10);
}

fn read(path: &Path) -> Result<String, AuthorityError> {
    std::fs::read_to_string(path).map_err(|source| AuthorityError::Read { path: path.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), AuthorityError> {
    crate::authn::kubeconfig::write_private(path, text)
        .map_err(|source| AuthorityError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::pem::PemObject;

    #[tokio::test]
    async fn a_certificate_names_its_user() {
        let user = User::new("ada", ["system:masters"]);

        let credential = Authority::generate().unwrap().client(&user).unwrap();

        let certificate = CertificateDer::from_pem_slice(credential.certificate.as_bytes()).unwrap();
        assert_eq!(User::of(&certificate), Some(user));
    }

    #[tokio::test]
    async fn an_authority_outlives_its_process() {
        let directory = tempfile::tempdir().unwrap();

        let first = Authority::open(directory.path()).unwrap();
        let second = Authority::open(directory.path()).unwrap();

        assert_eq!(first.certificate(), second.certificate());
        assert_eq!(first.key.serialize_pem(), second.key.serialize_pem());
    }

    #[tokio::test]
    async fn a_damaged_key_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        Authority::open(directory.path()).unwrap();
        std::fs::write(directory.path().join("ca.key"), "nonsense").unwrap();

        let error = Authority::open(directory.path()).err().unwrap().to_string();

        assert!(error.contains("ca.key holds no private key: delete the directory"), "{error}");
    }
}
