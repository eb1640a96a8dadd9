//! The authority that signs the certificates of webhooks, as a value: what it consists of, and what follows with time.
//! A new authority is trusted before it signs, and an old one is trusted until nothing that it signed is served any more.

use crate::program::tls::{self, Pem, two_thirds};
use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long an authority is valid.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long a server's certificate is valid. It is only in memory.
const LEAF_LIFE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long a new authority is trusted before it signs: an API server may take some time to read a configuration.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);

/// The authorities of an operator. It is the content of a Secret.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Authority {
    current: Signer,
    next: Option<Signer>,
    previous: Option<Retired>,
}

/// An authority that can sign.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Signer {
    name: String,
    certificate: String,
    key: String,
    since: Timestamp,
    until: Timestamp,
}

/// An authority that signs no more.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Retired {
    certificate: String,
    /// When it need not be trusted any more.
    until: Timestamp,
}

impl Authority {
    /// A new authority of an operator.
    pub(crate) fn new(operator: &str, now: Timestamp) -> Result<Authority, rcgen::Error> {
        Ok(Authority {
            current: Signer::new(operator, now)?,
            next: None,
            previous: None,
        })
    }

    /// What follows with time; none if nothing does. `injected` says whether the bundle is known to be trusted as it is.
    pub(crate) fn step(
        &self,
        operator: &str,
        now: Timestamp,
        injected: bool,
    ) -> Result<Option<Authority>, rcgen::Error> {
        let Authority { current, next, previous } = self;
        if now >= current.until || now < current.since - DAY {
            return Authority::new(operator, now).map(Some);
        }
        if let Some(next) = next {
            let promoted = || Authority {
                current: next.clone(),
                next: None,
                previous: Some(Retired {
                    certificate: current.certificate.clone(),
                    until: now + LEAF_LIFE,
                }),
            };
            return Ok((injected && now >= next.since + OVERLAP).then(promoted));
        }
        if now >= two_thirds(current.since, current.until.duration_since(current.since)) {
            let next = Some(Signer::new(operator, now)?);
            return Ok(Some(Authority { next, ..self.clone() }));
        }
        let is_over = previous.as_ref().is_some_and(|previous| now >= previous.until);
        Ok(is_over.then(|| Authority { previous: None, ..self.clone() }))
    }

    /// All certificates that are to be trusted, in PEM.
    pub(crate) fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|next| &next.certificate);
        let previous = self.previous.as_ref().map(|previous| &previous.certificate);
        [Some(&self.current.certificate), next, previous]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect()
    }

    /// What tells the authority that signs now from others.
    pub(crate) fn signer(&self) -> &str {
        &self.current.name
    }

    /// A new certificate for a server under these names.
    pub(crate) fn issue(&self, names: &[String], now: Timestamp) -> Result<Pem, rcgen::Error> {
        let until = (now + LEAF_LIFE).min(self.current.until);
        let params = tls::server_params(names, now, until)?;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(self.current.params()?, KeyPair::from_pem(&self.current.key)?);
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(Pem {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            renewal: Some(two_thirds(now, until.duration_since(now))),
        })
    }
}

impl Signer {
    fn new(operator: &str, now: Timestamp) -> Result<Signer, rcgen::Error> {
        let mut signer = Signer {
            // No two authorities have the same name: clients look for the one that signed by it.
            name: format!("{operator}-{:.8}", Uuid::new_v4().simple().to_string()),
            certificate: String::new(),
            key: String::new(),
            since: now,
            until: now + LIFE,
        };
        let key = KeyPair::generate()?;
        signer.certificate = signer.params()?.self_signed(&key)?.pem();
        signer.key = key.serialize_pem();
        Ok(signer)
    }

    fn params(&self) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, self.name.as_str());
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        tls::set_validity(&mut params, self.since, self.until);
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stepped(authority: &Authority, now: Timestamp, injected: bool) -> Option<Authority> {
        authority.step("greeter", now, injected).unwrap()
    }

    #[test]
    fn an_authority_is_trusted_before_it_signs_and_after_it_has_signed() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = Authority::new("greeter", start).unwrap();
        let due = start + LIFE / 3 * 2;
        assert_eq!(stepped(&first, due - DAY, true), None);

        let second = stepped(&first, due, true).unwrap();
        assert_eq!(second.signer(), first.signer());
        assert!(second.bundle().starts_with(&first.bundle()) && second.bundle().len() > first.bundle().len());
        assert_eq!(stepped(&second, due + OVERLAP / 2, true), None, "the API servers may not know it yet");
        assert_eq!(stepped(&second, due + OVERLAP * 9, false), None, "it is not injected");

        let third = stepped(&second, due + OVERLAP, true).unwrap();
        assert_ne!(third.signer(), first.signer());
        assert!(third.bundle().contains(&first.bundle()), "certificates of the first are still served");
        assert_eq!(stepped(&third, due + OVERLAP + LEAF_LIFE - DAY, true), None);
        let last = stepped(&third, due + OVERLAP + LEAF_LIFE, true).unwrap();
        assert!(!last.bundle().contains(&first.bundle()));
    }

    #[test]
    fn an_authority_that_has_expired_is_replaced_at_once() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let first = Authority::new("greeter", start).unwrap();
        assert!(stepped(&first, start + LIFE, false).is_some());
        assert!(stepped(&first, start - DAY * 30, false).is_some(), "the clock was wrong when it was made");
    }

    #[test]
    fn a_server_certificate_does_not_outlive_its_authority() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let authority = Authority::new("greeter", start).unwrap();
        let names = ["greeter-webhook.default.svc".to_owned()];
        let leaf = authority.issue(&names, start + LIFE - DAY).unwrap();
        assert!(leaf.renewal.unwrap() < start + LIFE);
        assert_eq!(authority.issue(&names, start).unwrap().renewal, Some(start + LEAF_LIFE / 3 * 2));
    }
}
