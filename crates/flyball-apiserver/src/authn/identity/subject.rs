//! Reads the subject of a certificate: the few rules of DER that distinguished names need.

use crate::authn::identity::User;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;

/// The user in a subject (the contents of its outer sequence); none without a common name.
pub(crate) fn user(subject: &[u8]) -> Option<User> {
    let (name, groups) = names(subject)?;
    Some(User::new(name.filter(|name| !name.is_empty())?, groups))
}

/// The organizations in the subject of a certificate signing request in DER; none if it is malformed.
// RFC 2986, section 4.1
pub(crate) fn organizations_of_request(der: &[u8]) -> Option<Vec<String>> {
    let (request, _) = element(der, SEQUENCE)?;
    let (fields, _) = element(request, SEQUENCE)?;
    let (_version, rest) = element(fields, INTEGER)?;
    let (subject, _) = element(rest, SEQUENCE)?;
    names(subject).map(|(_, organizations)| organizations)
}

/// The last common name and the organizations of a subject; none if it is malformed.
fn names(mut subject: &[u8]) -> Option<(Option<String>, Vec<String>)> {
    let (mut name, mut groups) = (None, vec![]);
    while !subject.is_empty() {
        let (mut attributes, rest) = element(subject, SET)?;
        subject = rest;
        while !attributes.is_empty() {
            let (attribute, rest) = element(attributes, SEQUENCE)?;
            attributes = rest;
            let (kind, value) = element(attribute, OBJECT_IDENTIFIER)?;
            match kind {
                COMMON_NAME => name = Some(text(value)?),
                ORGANIZATION => groups.push(text(value)?),
                _ => {}
            }
        }
    }
    Some((name, groups))
}

fn text(value: &[u8]) -> Option<String> {
    let (text, _) = element(value, UTF8_STRING).or_else(|| element(value, PRINTABLE_STRING))?;
    String::from_utf8(text.to_vec()).ok()
}

/// The contents of an element with that tag, and what follows it.
pub(super) fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [first, length, rest @ ..] = bytes else { return None };
    if *first != tag {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), &rest[2..]),
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_names_nobody() {
        let subject = [
            0x31, 14, 0x30, 12, 0x06, 3, 0x55, 4, 3, 0x0c, 5, b'a', b'd', b'm', b'i', b'n',
        ];

        assert_eq!(user(&subject).unwrap().name, "admin");
        for length in 0..subject.len() {
            assert_eq!(user(&subject[..length]), None, "{length}");
        }
    }
}
