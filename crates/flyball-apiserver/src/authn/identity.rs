//! The certificate authority of a cluster, the certificates that it signs, and the user that a client certificate names.
//! Only the authority is stored on disk; server and client certificates are signed again at each start.

pub(crate) mod subject;
mod x509;

use crate::clock::Clock;
use flyball_host::private;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
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
    /// One of the two files is missing.
    #[error("{} is missing beside {}: restore it, or {RENEW}", missing.display(), present.display())]
    Incomplete {
        /// The file that is missing.
        missing: PathBuf,
        /// The file that exists.
        present: PathBuf,
    },
    /// The key on disk is invalid.
    #[error("{} holds no private key: restore it, or {RENEW}", path.display())]
    InvalidKey {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rcgen::Error,
    },
    /// The certificate on disk is invalid.
    #[error("{} holds no certificate authority: restore it, or {RENEW}", path.display())]
    InvalidCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The two files do not belong together.
    #[error("{} is not the certificate of the key {}: restore the right file, or {RENEW}", certificate.display(), key.display())]
    Mismatch {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// The certificate is not valid at this time.
    #[error("the certificate authority {} is valid from {from} to {to}, and it is {now:.0}: correct the clock, or {RENEW}", path.display())]
    OutOfDate {
        /// The certificate.
        path: PathBuf,
        /// The start of its validity.
        from: Timestamp,
        /// The end of its validity.
        to: Timestamp,
        /// The time of the check.
        now: Timestamp,
    },
    /// A certificate could not be made.
    #[error("make a certificate")]
    Sign(#[from] rcgen::Error),
}

/// How a user gets a new authority.
const RENEW: &str =
    "move the directory away to create a new certificate authority (clients then need the new kubeconfig)";

impl Authority {
    /// Generates a new certificate authority.
    pub fn generate() -> Result<Authority, AuthorityError> {
        let key = KeyPair::generate()?;
        let certificate = authority_params(Clock::start().now()).self_signed(&key)?.pem();
        Ok(Authority { certificate, key })
    }

    /// The authority stored in a directory; a new one if the directory has none.
    pub fn open(directory: &Path) -> Result<Authority, AuthorityError> {
        private::directory(directory).map_err(|source| AuthorityError::Write { path: directory.to_owned(), source })?;
        let (certificate_path, key_path) = (directory.join("ca.crt"), directory.join("ca.key"));
        let (certificate, key) = match (read(&certificate_path)?, read(&key_path)?) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => return Authority::create(&certificate_path, &key_path),
            (None, Some(_)) => return Err(AuthorityError::Incomplete { missing: certificate_path, present: key_path }),
            (Some(_), None) => return Err(AuthorityError::Incomplete { missing: key_path, present: certificate_path }),
        };
        let key =
            KeyPair::from_pem(&key).map_err(|source| AuthorityError::InvalidKey { path: key_path.clone(), source })?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok();
        let Some(read) = der.as_ref().and_then(|der| x509::read(der)) else {
            return Err(AuthorityError::InvalidCertificate { path: certificate_path });
        };
        if read.public_key != key.subject_public_key_info() {
            return Err(AuthorityError::Mismatch { certificate: certificate_path, key: key_path });
        }
        let now = Clock::start().now();
        let (from, to) = read.validity;
        match (from..=to).contains(&now) {
            true => Ok(Authority { certificate, key }),
            false => Err(AuthorityError::OutOfDate { path: certificate_path, from, to, now }),
        }
    }

    /// Generates an authority and writes it.
    fn create(certificate_path: &Path, key_path: &Path) -> Result<Authority, AuthorityError> {
        let authority = Authority::generate()?;
        write(certificate_path, &authority.certificate)?;
        write(key_path, &authority.key.serialize_pem())?;
        Ok(authority)
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
    /// The user in the subject of a certificate; `None` if the certificate is invalid or has no common name.
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

/// The text of a file, if it exists.
fn read(path: &Path) -> Result<Option<String>, AuthorityError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(AuthorityError::Read { path: path.to_owned(), source }),
    }
}

fn write(path: &Path, text: &str) -> Result<(), AuthorityError> {
    private::write(path, text.as_bytes()).map_err(|source| AuthorityError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
    async fn damaged_or_missing_files_are_refused_by_name_and_kept() {
        let other = tempfile::tempdir().unwrap();
        Authority::open(other.path()).unwrap();
        let other_key = fs::read(other.path().join("ca.key")).unwrap();
        let other_certificate = fs::read(other.path().join("ca.crt")).unwrap();
        for (file, content, expected) in [
            (
                "ca.key",
                Some(&b"nonsense"[..]),
                "ca.key holds no private key: restore it, or move the directory away",
            ),
            ("ca.key", Some(b""), "ca.key holds no private key"),
            ("ca.key", None, "ca.key is missing beside "),
            ("ca.crt", None, "ca.crt is missing beside "),
            ("ca.crt", Some(b""), "ca.crt holds no certificate authority"),
            (
                "ca.crt",
                Some(b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
                "ca.crt holds no",
            ),
            ("ca.crt", Some(&other_certificate), "ca.crt is not the certificate of the key "),
            ("ca.key", Some(&other_key), "ca.key: restore the right file"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            Authority::open(directory.path()).unwrap();
            let path = directory.path().join(file);
            match content {
                Some(content) => fs::write(&path, content).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }

            let error = Authority::open(directory.path()).err().unwrap().to_string();

            assert!(error.contains(expected), "{error}");
            assert_eq!(fs::read(&path).ok().as_deref(), content, "{file} is not replaced");
        }
    }

    #[tokio::test]
    async fn an_authority_that_is_not_valid_now_is_refused_with_its_dates() {
        for (year, expected) in [
            (2000, "is valid from 2000-01-01T00:00:00Z to 2010-01-01T00:00:00Z"),
            (2200, "from 2200"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let authority = Authority::open(directory.path()).unwrap();
            let mut params = authority_params(Clock::start().now());
            params.not_before = rcgen::date_time_ymd(year, 1, 1);
            params.not_after = rcgen::date_time_ymd(year + 10, 1, 1);
            fs::write(directory.path().join("ca.crt"), params.self_signed(&authority.key).unwrap().pem()).unwrap();

            let error = Authority::open(directory.path()).err().unwrap().to_string();

            assert!(error.contains(expected) && error.contains("correct the clock, or move"), "{error}");
        }
    }

    #[tokio::test]
    async fn only_the_owner_can_read_an_authority() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("authority");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();

        Authority::open(&directory).unwrap();

        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let modes = [
            mode(&directory),
            mode(&directory.join("ca.crt")),
            mode(&directory.join("ca.key")),
        ];
        assert_eq!(modes, [0o700, 0o600, 0o600]);
    }
}
