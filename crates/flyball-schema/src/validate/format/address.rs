//! Addresses of all sorts, as Go's `net`, `net/url` and `net/mail` take them.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An address of either version; octets may have leading zeros.
pub(crate) fn is_ip(text: &str) -> bool {
    match text.rsplit_once(':') {
        None => sloppy_v4(text).is_some(),
        Some((front, last)) if last.contains('.') => match sloppy_v4(last) {
            Some(v4) => format!("{front}:{v4}").parse::<Ipv6Addr>().is_ok(),
            None => false,
        },
        Some(_) => text.parse::<Ipv6Addr>().is_ok(),
    }
}

fn sloppy_v4(text: &str) -> Option<Ipv4Addr> {
    let octets: Option<Vec<u8>> = text
        .split('.')
        .map(|octet| {
            let fits = !octet.is_empty() && octet.bytes().all(|byte| byte.is_ascii_digit());
            fits.then_some(octet)?.trim_start_matches('0').parse().or_else(|_| all_zeros(octet)).ok()
        })
        .collect();
    <[u8; 4]>::try_from(octets?).ok().map(Ipv4Addr::from)
}

fn all_zeros(octet: &str) -> Result<u8, ()> {
    if octet.bytes().all(|byte| byte == b'0') {
        Ok(0)
    } else {
        Err(())
    }
}

pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = if address.contains(':') { 128 } else { 32 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= most) && is_ip(address)
}

/// Six, eight or twenty bytes, in pairs behind colons or dashes, or in fours behind dots.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, width) = match text.chars().find(|character| !character.is_ascii_hexdigit()) {
        Some(separator @ (':' | '-')) => (separator, 2),
        Some('.') => ('.', 4),
        _ => return false,
    };
    let groups: Vec<_> = text.split(separator).collect();
    let filled = |group: &&str| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    [6, 8, 20].contains(&(groups.len() * width / 2)) && groups.iter().all(filled)
}

/// What Go's `url.ParseRequestURI` takes: an absolute URI, or an absolute path.
pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let path = rest.split('?').next().unwrap_or_default();
    if !path.starts_with('/') {
        return !scheme.is_empty();
    }
    match path.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        None => is_escaped(path),
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && is_escaped(path)
        }
    }
}

/// The scheme, which may be empty, and what follows; nothing if the text begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match text.split_once(':') {
        Some(("", _)) => None,
        Some((front, rest)) if scheme(front) => Some((front, rest)),
        _ => Some(("", text)),
    }
}

fn is_authority(text: &str) -> bool {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => (address, port),
            None => return false,
        },
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    let port_fits =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    port_fits && is_escaped(name) && !name.contains([' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}'])
}

/// Whether every percent sign is followed by two hexadecimal digits.
fn is_escaped(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// An address of mail, which may have a name before it and angle brackets around it.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((name, address)) => {
            let words = name.trim().trim_matches('"');
            if words.contains(['<', '>', '@', ',', ';', ':', '"']) && !name.trim().starts_with('"') {
                return false;
            }
            address
        }
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || is_dot_atom(local)) && (literal || is_dot_atom(domain))
}

fn is_dot_atom(text: &str) -> bool {
    let atom = |character: char| {
        character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character) || !character.is_ascii()
    };
    text.split('.').all(|part| !part.is_empty() && part.chars().all(atom))
}
