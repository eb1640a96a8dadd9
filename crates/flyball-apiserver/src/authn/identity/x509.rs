//! Reads the validity and the public key of a certificate: the few rules of DER that these need.

use super::subject::element;
use jiff::Timestamp;

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// What is read of a certificate.
pub(super) struct Certificate<'a> {
    /// The first and the last moment at which it is valid.
    pub(super) validity: (Timestamp, Timestamp),
    /// Its `SubjectPublicKeyInfo`, in DER.
    pub(super) public_key: &'a [u8],
}

/// Reads a certificate in DER; none if it is malformed.
// RFC 5280, section 4.1
pub(super) fn read(der: &[u8]) -> Option<Certificate<'_>> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (fields, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(fields, VERSION)?;
    let (_serial, rest) = element(rest, INTEGER)?;
    let (_signature, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    let (validity, rest) = element(rest, SEQUENCE)?;
    let (_subject, key) = element(rest, SEQUENCE)?;
    let (_key, rest) = element(key, SEQUENCE)?;
    let (from, to) = time(validity)?;
    let (to, _) = time(to)?;
    Some(Certificate {
        validity: (from, to),
        public_key: &key[..key.len() - rest.len()],
    })
}

fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let utc = element(bytes, UTC_TIME).map(|(text, rest)| {
        // RFC 5280, section 4.1.2.5.1: years from 50 on are of the last century.
        let century: &[u8] = if text.first() >= Some(&b'5') { b"19" } else { b"20" };
        ([century, text].concat(), rest)
    });
    let generalized = || element(bytes, GENERALIZED_TIME).map(|(text, rest)| (text.to_vec(), rest));
    let (text, rest) = utc.or_else(generalized)?;
    let text = String::from_utf8(text).ok()?;
    let time = jiff::civil::DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some((time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_time_are_read() {
        let read = |tag: u8, text: &str| {
            let bytes = [&[tag, text.len() as u8], text.as_bytes()].concat();
            time(&bytes).map(|(time, _)| time.to_string())
        };
        assert_eq!(read(UTC_TIME, "261118003000Z").as_deref(), Some("2026-11-18T00:30:00Z"));
        assert_eq!(read(UTC_TIME, "991231235959Z").as_deref(), Some("1999-12-31T23:59:59Z"));
        assert_eq!(read(GENERALIZED_TIME, "20500101000000Z").as_deref(), Some("2050-01-01T00:00:00Z"));
        assert_eq!(read(UTC_TIME, "261318003000Z"), None);
        assert_eq!(read(INTEGER, "261118003000Z"), None);
    }
}
