//! The control plane's keys: a CA, a serving certificate, two client certificates, a service-account key.

use std::fs;
use std::path::Path;

use rcgen::KeyUsagePurpose;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use super::Error;

/// A certificate and its key, in PEM.
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// What clients are given; the rest is in files.
pub struct Certificates {
    /// The CA's certificate, in PEM.
    pub ca: String,
    /// A member of `system:masters`.
    pub admin: Identity,
    /// A user without rights.
    pub restricted: Identity,
}

impl Certificates {
    /// Makes new keys and writes those that the control plane reads into `directory`.
    pub fn write(directory: &Path) -> Result<Self, Error> {
        let mut authority = named("flyball-reference-ca", None);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let mut server = named("kube-apiserver", None);
        let hosts = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "127.0.0.1",
            "10.0.0.1",
        ];
        server.subject_alt_names = CertificateParams::new(hosts.map(String::from))?.subject_alt_names;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server = sign(server, &authority)?;

        let service_accounts = KeyPair::generate()?;
        let files = [
            ("ca.crt", authority.pem()),
            ("server.crt", server.certificate),
            ("server.key", server.key),
            ("service-account.key", service_accounts.serialize_pem()),
            ("service-account.pub", service_accounts.public_key_pem()),
        ];
        for (name, text) in files {
            fs::write(directory.join(name), text).map_err(Error::Directory)?;
        }
        Ok(Self {
            ca: authority.pem(),
            admin: client("admin", Some("system:masters"), &authority)?,
            restricted: client("restricted", None, &authority)?,
        })
    }
}

fn named(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        parameters.distinguished_name.push(DnType::OrganizationName, organization);
    }
    parameters
}

fn client(user: &str, group: Option<&str>, authority: &CertifiedIssuer<'_, KeyPair>) -> Result<Identity, Error> {
    let mut parameters = named(user, group);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    sign(parameters, authority)
}

fn sign(parameters: CertificateParams, authority: &CertifiedIssuer<'_, KeyPair>) -> Result<Identity, Error> {
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, authority)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}
