//! IP addresses and networks, as Go's `net/netip` reads them (Kubernetes' ip and cidr libraries).

use super::strings::go_quote;
use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Opaque, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip(IpAddr);

/// An address and the length of the network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Opaque for Ip {
    fn type_of(&self) -> Type {
        Type::opaque("net.IP")
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError> {
        other
            .downcast_ref::<Ip>()
            .map(|other| self == other)
            .ok_or_else(EvalError::no_such_overload)
    }

    fn size(&self) -> Option<usize> {
        Some(if self.0.is_ipv4() { 4 } else { 16 })
    }

    fn show(&self) -> String {
        address_text(self.0)
    }
}

impl Opaque for Cidr {
    fn type_of(&self) -> Type {
        Type::opaque("net.CIDR")
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError> {
        other
            .downcast_ref::<Cidr>()
            .map(|other| self == other)
            .ok_or_else(EvalError::no_such_overload)
    }

    fn size(&self) -> Option<usize> {
        Some(usize::from(self.bits).div_ceil(8))
    }

    fn show(&self) -> String {
        format!("{}/{}", address_text(self.address), self.bits)
    }
}

pub(super) const IP: [Entry; 10] = [
    entry("ip", "string_to_ip", "(string) -> ~net.IP", |args| {
        text(args, |text| parse_ip(text).map(Value::opaque))
    }),
    entry("family", "ip_family", "~net.IP.() -> int", |args| {
        address(args, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
    }),
    entry("ip.isCanonical", "ip_is_canonical", "(string) -> bool", |args| {
        text(args, |text| parse_ip(text).map(|ip| Value::Bool(ip.show() == text)))
    }),
    entry("isUnspecified", "ip_is_unspecified", "~net.IP.() -> bool", |args| {
        address(args, |address| Value::Bool(address.is_unspecified()))
    }),
    entry("isLoopback", "ip_is_loopback", "~net.IP.() -> bool", |args| {
        address(args, |address| Value::Bool(address.is_loopback()))
    }),
    entry("isLinkLocalMulticast", "ip_is_link_local_multicast", "~net.IP.() -> bool", |args| {
        address(args, |address| Value::Bool(is_link_local_multicast(address)))
    }),
    entry("isLinkLocalUnicast", "ip_is_link_local_unicast", "~net.IP.() -> bool", |args| {
        address(args, |address| Value::Bool(is_link_local_unicast(address)))
    }),
    entry("isGlobalUnicast", "ip_is_global_unicast", "~net.IP.() -> bool", |args| {
        address(args, |address| Value::Bool(is_global_unicast(address)))
    }),
    entry("isIP", "is_ip", "(string) -> bool", |args| {
        text(args, |text| Ok(Value::Bool(parse_ip(text).is_ok())))
    }),
    entry("string", "ip_to_string", "(~net.IP) -> string", |args| {
        address(args, |address| Value::string(address_text(address)))
    }),
];

pub(super) const CIDR: [Entry; 10] = [
    entry("cidr", "string_to_cidr", "(string) -> ~net.CIDR", |args| {
        text(args, |text| parse_cidr(text).map(Value::opaque).map_err(network_error))
    }),
    entry("containsIP", "cidr_contains_ip_string", "~net.CIDR.(string) -> bool", |args| {
        network(args, |cidr| match &args[1] {
            // Upstream reports a string that is not an address as a missing overload.
            Value::String(text) => match parse_ip(text) {
                Ok(ip) => Ok(Value::Bool(cidr.contains(ip.0))),
                Err(_) => Err(EvalError::no_such_overload()),
            },
            _ => Err(EvalError::no_such_overload()),
        })
    }),
    entry("containsIP", "cidr_contains_ip_ip", "~net.CIDR.(~net.IP) -> bool", |args| {
        network(args, |cidr| match args[1].downcast::<Ip>() {
            Some(ip) => Ok(Value::Bool(cidr.contains(ip.0))),
            None => Err(EvalError::no_such_overload()),
        })
    }),
    entry("containsCIDR", "cidr_contains_cidr_string", "~net.CIDR.(string) -> bool", |args| {
        network(args, |cidr| match &args[1] {
            Value::String(text) => {
                let other = parse_cidr(text).map_err(network_error)?;
                Ok(Value::Bool(cidr.covers(&other)))
            }
            _ => Err(EvalError::no_such_overload()),
        })
    }),
    entry("containsCIDR", "cidr_contains_cidr", "~net.CIDR.(~net.CIDR) -> bool", |args| {
        network(args, |cidr| match args[1].downcast::<Cidr>() {
            Some(other) => Ok(Value::Bool(cidr.covers(other))),
            None => Err(EvalError::no_such_overload()),
        })
    }),
    entry("ip", "cidr_ip", "~net.CIDR.() -> ~net.IP", |args| {
        network(args, |cidr| Ok(Value::opaque(Ip(cidr.address))))
    }),
    entry("prefixLength", "cidr_prefix_length", "~net.CIDR.() -> int", |args| {
        network(args, |cidr| Ok(Value::Int(cidr.bits.into())))
    }),
    entry("masked", "cidr_masked", "~net.CIDR.() -> ~net.CIDR", |args| {
        network(args, |cidr| {
            Ok(Value::opaque(Cidr { address: mask(cidr.address, cidr.bits), bits: cidr.bits }))
        })
    }),
    entry("isCIDR", "is_cidr", "(string) -> bool", |args| {
        text(args, |text| Ok(Value::Bool(parse_cidr(text).is_ok())))
    }),
    entry("string", "cidr_to_string", "(~net.CIDR) -> string", |args| {
        network(args, |cidr| Ok(Value::string(cidr.show())))
    }),
];

impl Cidr {
    fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && mask(self.address, self.bits) == mask(address, self.bits)
    }

    /// Whether the other network lies within this one.
    fn covers(&self, other: &Cidr) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

fn text<'a>(args: &[Value<'a>], with: impl Fn(&str) -> Outcome<'a>) -> Outcome<'a> {
    match args {
        [Value::String(text), ..] => with(text),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn address<'a>(args: &[Value<'a>], with: impl Fn(IpAddr) -> Value<'a>) -> Outcome<'a> {
    match args[0].downcast::<Ip>() {
        Some(ip) => Ok(with(ip.0)),
        None => Err(EvalError::no_such_overload()),
    }
}

fn network<'a>(args: &[Value<'a>], with: impl Fn(&Cidr) -> Outcome<'a>) -> Outcome<'a> {
    match args[0].downcast::<Cidr>() {
        Some(cidr) => with(cidr),
        None => Err(EvalError::no_such_overload()),
    }
}

fn network_error(error: EvalError) -> EvalError {
    EvalError::new(format!("network address parse error during conversion from string: {error}"))
}

fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let kept = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & kept))
        }
        IpAddr::V6(address) => {
            let kept = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
        }
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !is_broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}

fn address_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => address.to_string(),
        // Go never writes the last two groups as an IPv4 address otherwise.
        IpAddr::V6(address) => groups_text(address.segments()),
    }
}

/// Groups in hexadecimal; the first of the longest runs of zeros is left out.
fn groups_text(groups: [u16; 8]) -> String {
    let run = |start: usize| groups[start..].iter().take_while(|group| **group == 0).count();
    let longest = (0..8)
        .map(|start| (run(start), std::cmp::Reverse(start)))
        .max()
        .filter(|(length, _)| *length > 1);
    let hex = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    match longest {
        Some((length, std::cmp::Reverse(start))) => {
            format!("{}::{}", hex(&groups[..start]), hex(&groups[start + length..]))
        }
        None => hex(&groups),
    }
}

fn parse_ip(text: &str) -> Result<Ip, EvalError> {
    let wrong = |why: String| {
        EvalError::new(format!("IP Address {} parse error during conversion from string: {why}", go_quote(text)))
    };
    let (address, zone) = parse_address(text).map_err(wrong)?;
    if zone {
        return Err(EvalError::new(format!("IP address {} with zone value is not allowed", go_quote(text))));
    }
    if is_mapped(address) {
        return Err(EvalError::new(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text))));
    }
    Ok(Ip(address))
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn parse_cidr(text: &str) -> Result<Cidr, EvalError> {
    let wrong = |why: String| {
        let message = format!("netip.ParsePrefix({}): {why}", go_quote(text));
        network_error(EvalError::new(message))
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'".into()))?;
    let (address, zone) = parse_address(address).map_err(wrong)?;
    if zone {
        return Err(wrong("IPv6 zones cannot be present in a prefix".into()));
    }
    let bad = || wrong(format!("bad bits after slash: {}", go_quote(bits)));
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
    let number: u64 = bits.parse().ok().filter(|_| digits).ok_or_else(bad)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if number > most {
        return Err(wrong("prefix length out of range".into()));
    }
    if is_mapped(address) {
        return Err(EvalError::new(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text))));
    }
    Ok(Cidr { address, bits: number as u8 })
}

/// Reads an address as `netip.ParseAddr` does; tells whether it has a zone.
pub(super) fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    let wrong = |why: &str| format!("ParseAddr({}): {why}", go_quote(text));
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => parse_v4(text).map(|address| (IpAddr::V4(address), false)).map_err(|why| wrong(&why)),
        Some(b':') => {
            let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
            if zone == Some("") {
                return Err(wrong("zone must be a non-empty string"));
            }
            let parsed: Result<Ipv6Addr, _> = address.parse();
            match parsed {
                Ok(address) => Ok((IpAddr::V6(address), zone.is_some())),
                Err(_) => Err(wrong(&v6_complaint(address))),
            }
        }
        Some(_) => Err(wrong("missing IPv6 address")),
        None => Err(wrong("unable to parse IP")),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, String> {
    let (mut fields, mut value, mut digits): (Vec<u8>, u32, usize) = (Vec::new(), 0, 0);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".into());
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".into());
                }
            }
            b'.' => {
                if at == 0 || at == bytes.len() - 1 || bytes[at - 1] == b'.' {
                    return Err(format!("IPv4 field must have at least one digit (at {})", go_quote(&text[at..])));
                }
                if fields.len() == 3 {
                    return Err("IPv4 address too long".into());
                }
                fields.push(value as u8);
                (value, digits) = (0, 0);
            }
            _ => {
                let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                return Err(format!("unexpected character (at {})", go_quote(&text[at..])));
            }
        }
    }
    match fields[..] {
        [one, two, three] => Ok(Ipv4Addr::new(one, two, three, value as u8)),
        _ => Err("IPv4 address too short".into()),
    }
}

/// What Go says of an IPv6 address that is none.
fn v6_complaint(text: &str) -> String {
    let at = |why: &str, rest: &str| format!("{why} (at {})", go_quote(rest));
    let mut rest = text.strip_prefix("::").unwrap_or(text);
    let mut ellipsis = rest.len() < text.len();
    let mut groups = 0;
    while groups < 8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return at("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return at("each colon-separated field must have at least one digit", rest);
        }
        if rest.as_bytes().get(digits) == Some(&b'.') {
            if !ellipsis && groups != 6 {
                return at("embedded IPv4 address must replace the final 2 fields of the address", rest);
            }
            if groups > 6 {
                return at("too many hex fields to fit an embedded IPv4 at the end of the address", rest);
            }
            return parse_v4(rest).err().unwrap_or_else(|| "address string too short".into());
        }
        groups += 1;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        if !rest.starts_with(':') {
            return at("unexpected character, want colon", rest);
        }
        if rest.len() == 1 {
            return at("colon must be followed by more characters", rest);
        }
        rest = &rest[1..];
        if rest.starts_with(':') {
            if ellipsis {
                return at("multiple :: in address", rest);
            }
            ellipsis = true;
            rest = &rest[1..];
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return at("trailing garbage after address", rest);
    }
    match groups < 8 {
        true => "address string too short".into(),
        false => "the :: must expand to at least one field of zeros".into(),
    }
}
