//! URLs, as Go's `net/url` reads them (Kubernetes' url library).

use super::network::parse_address;
use super::strings::go_quote;
use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Map, Opaque, Value};
use std::collections::BTreeMap;

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// A URL in its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Url {
    scheme: String,
    opaque: String,
    user: Option<String>,
    host: Vec<u8>,
    path: Vec<u8>,
    raw_path: String,
    query: Option<String>,
    fragment: Option<String>,
}

impl Opaque for Url {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.URL")
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError> {
        let other = other.downcast_ref::<Url>().ok_or_else(EvalError::no_such_overload)?;
        Ok(self.show() == other.show())
    }

    fn show(&self) -> String {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme);
            text.push(':');
        }
        if self.opaque.is_empty() {
            if !self.host.is_empty() || self.user.is_some() {
                text.push_str("//");
            }
            if let Some(user) = &self.user {
                text.push_str(user);
                text.push('@');
            }
            text.push_str(&String::from_utf8_lossy(&self.host));
            text.push_str(&self.escaped_path());
        } else {
            text.push_str(&self.opaque);
        }
        for (mark, part) in [('?', &self.query), ('#', &self.fragment)] {
            if let Some(part) = part {
                text.push(mark);
                text.push_str(part);
            }
        }
        text
    }
}

pub(super) const FUNCTIONS: [Entry; 8] = [
    entry("url", "string_to_url", "(string) -> kubernetes.URL", |args| match &args[0] {
        Value::String(text) => {
            let wrong = |why: String| {
                let text = go_quote(text);
                EvalError::new(format!("URL parse error during conversion from string: parse {text}: {why}"))
            };
            parse(text, true).map_err(wrong)?;
            parse_reference(text).map(Value::opaque).map_err(wrong)
        }
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("getScheme", "url_get_scheme", "kubernetes.URL.() -> string", |args| {
        part(args, |url| Value::string(url.scheme.clone()))
    }),
    entry("getHost", "url_get_host", "kubernetes.URL.() -> string", |args| {
        part(args, |url| Value::string(String::from_utf8_lossy(&url.host)))
    }),
    entry("getHostname", "url_get_hostname", "kubernetes.URL.() -> string", |args| {
        part(args, |url| Value::string(url.host_and_port().0))
    }),
    entry("getPort", "url_get_port", "kubernetes.URL.() -> string", |args| {
        part(args, |url| Value::string(url.host_and_port().1))
    }),
    entry("getEscapedPath", "url_get_escaped_path", "kubernetes.URL.() -> string", |args| {
        part(args, |url| Value::string(url.escaped_path()))
    }),
    entry(
        "getQuery",
        "url_get_query",
        "kubernetes.URL.() -> map(string, list(string))",
        |args| match args[0].downcast::<Url>() {
            Some(url) => query(url.query.as_deref().unwrap_or_default()),
            None => Err(EvalError::no_such_overload()),
        },
    ),
    entry("isURL", "is_url_string", "(string) -> bool", |args| match &args[0] {
        Value::String(text) => Ok(Value::Bool(parse(text, true).is_ok())),
        _ => Err(EvalError::no_such_overload()),
    }),
];

fn part<'a>(args: &[Value<'a>], with: fn(&Url) -> Value<'a>) -> Outcome<'a> {
    match args[0].downcast::<Url>() {
        Some(url) => Ok(with(url)),
        None => Err(EvalError::no_such_overload()),
    }
}

impl Url {
    fn host_and_port(&self) -> (String, String) {
        let host = String::from_utf8_lossy(&self.host).into_owned();
        let (name, port) = match host.rfind(':').filter(|colon| is_port(&host[*colon..])) {
            Some(colon) => (&host[..colon], &host[colon + 1..]),
            None => (&*host, ""),
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        (bare.to_string(), port.to_string())
    }

    fn escaped_path(&self) -> String {
        if !self.raw_path.is_empty() && self.raw_path.bytes().all(is_encoded) {
            return self.raw_path.clone();
        }
        if self.path == b"*" {
            "*".into()
        } else {
            escape_path(&self.path)
        }
    }
}

/// What a request's URI must be: a path, or a URL with a scheme (url.ParseRequestURI).
pub(super) fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    if text.is_empty() && request {
        return Err("empty url".into());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    url.query = query.map(String::from);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.into();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".into());
        }
        if rest.split('/').next().unwrap_or_default().contains(':') {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    let authority = !url.scheme.is_empty() || (!request && !rest.starts_with("///"));
    if let Some(after) = rest.strip_prefix("//").filter(|_| authority) {
        let end = after.find('/').unwrap_or(after.len());
        (url.user, url.host) = parse_authority(&url.scheme, &after[..end])?;
        rest = &after[end..];
    }
    url.path = unescape(rest, Mode::Path)?;
    if escape_path(&url.path) != rest {
        url.raw_path = rest.into();
    }
    Ok(url)
}

/// The same, with a fragment behind `#` (url.Parse).
fn parse_reference(text: &str) -> Result<Url, String> {
    let (rest, fragment) = text.split_once('#').map_or((text, None), |(rest, fragment)| (rest, Some(fragment)));
    let mut url = parse(rest, false)?;
    if let Some(fragment) = fragment {
        unescape(fragment, Mode::Path)?;
        url.fragment = Some(fragment.into()).filter(|fragment: &String| !fragment.is_empty());
    }
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, letter) in text.char_indices() {
        match letter {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".into()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<String>, Vec<u8>), String> {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = parse_host(scheme, host)?;
    if let Some(user) = user {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(letter);
        if !user.chars().all(allowed) {
            return Err("net/url: invalid userinfo".into());
        }
        unescape(user, Mode::Path)?;
    }
    Ok((user.map(String::from), host))
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => return parse_literal(host),
        Some(_) => return Err("invalid IP-literal".into()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        let strict = scheme == "http" || scheme == "https";
        let colon = if strict {
            first
        } else {
            host.rfind(':').unwrap_or(first)
        };
        if !is_port(&host[colon..]) {
            return Err(format!("invalid port {} after host", go_quote(&host[colon..])));
        }
    }
    unescape(host, Mode::Host)
}

/// An IPv6 address in brackets, and its port.
fn parse_literal(host: &str) -> Result<Vec<u8>, String> {
    let end = host.rfind(']').ok_or("missing ']' in host")?;
    let port = &host[end + 1..];
    if !is_port(port) {
        return Err(format!("invalid port {} after host", go_quote(port)));
    }
    let name = &host[1..end];
    let name = match name.find("%25") {
        Some(zone) => [
            unescape(&name[..zone], Mode::Host)?,
            unescape(&name[zone..], Mode::Zone)?,
        ]
        .concat(),
        None => unescape(name, Mode::Host)?,
    };
    let (address, _) = parse_address(&String::from_utf8_lossy(&name)).map_err(|why| format!("invalid host: {why}"))?;
    if address.is_ipv4() {
        return Err("invalid IP-literal".into());
    }
    Ok([b"[", &name[..], b"]", port.as_bytes()].concat())
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Path,
    Host,
    Zone,
    Query,
}

fn unescape(text: &str, mode: Mode) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'%' => {
                let digits = text
                    .get(at + 1..at + 3)
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let invalid = || {
                    let shown: String = text[at..].chars().take(3).collect();
                    format!("invalid URL escape {}", go_quote(&shown))
                };
                let value = u8::from_str_radix(digits.ok_or_else(invalid)?, 16).map_err(|_| invalid())?;
                let plain_percent = digits == Some("25");
                let in_host = mode == Mode::Host && value < 0x80 && !plain_percent;
                let in_zone = mode == Mode::Zone && !plain_percent && value != b' ' && !is_host_byte(value);
                if in_host || in_zone {
                    return Err(invalid());
                }
                plain.push(value);
                at += 3;
                continue;
            }
            b'+' if mode == Mode::Query => plain.push(b' '),
            byte if matches!(mode, Mode::Host | Mode::Zone) && byte < 0x80 && !is_host_byte(byte) => {
                return Err(format!("invalid character {} in host name", go_quote(&char::from(byte).to_string())));
            }
            byte => plain.push(byte),
        }
        at += 1;
    }
    Ok(plain)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

fn is_host_byte(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Whether the byte may stand in a path that is escaped already.
fn is_encoded(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@[]%/".contains(&byte)
}

fn escape_path(path: &[u8]) -> String {
    let mut text = String::new();
    for byte in path {
        if is_unreserved(*byte) || b"$&+,/:;=@".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn query<'a>(text: &str) -> Outcome<'a> {
    let mut values: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Ok(key), Ok(value)) = (unescape(key, Mode::Query), unescape(value, Mode::Query)) {
            let value = Value::string(String::from_utf8_lossy(&value));
            values.entry(String::from_utf8_lossy(&key).into_owned()).or_default().push(value);
        }
    }
    Map::of(values.into_iter().map(|(key, values)| (Value::string(key), Value::list(values)))).map(Value::Map)
}
