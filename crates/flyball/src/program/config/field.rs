//! Where in a [`Config`] a key's value is, how it is read from text, and how it is shown.

use crate::declare::operator::is_label;
use crate::engine::trace;
use crate::program::config::{CrdInstall, LogFormat};
use crate::program::log;
use http::Uri;
use jiff::SignedDuration;
use std::{net::IpAddr, time::Duration};

/// A field of the configuration, by the type of its value.
pub(crate) enum Field<'a> {
    Namespace(&'a mut Vec<String>),
    Namespaces(&'a mut Vec<String>),
    Bool(&'a mut bool),
    Home(&'a mut Option<String>),
    Lease(&'a mut Option<String>),
    Duration(&'a mut Duration),
    Address(&'a mut IpAddr),
    Port(&'a mut u16),
    Path(&'a mut String),
    Level(&'a mut String),
    Format(&'a mut LogFormat),
    Collector(&'a mut Option<String>),
    Service(&'a mut Option<String>),
    Count(&'a mut Option<u32>),
    Retries(&'a mut Option<u32>),
    Number(&'a mut Option<f64>),
    Time(&'a mut Option<Duration>),
    GraceTime(&'a mut Option<Duration>),
    Install(&'a mut CrdInstall),
    File(&'a mut Option<String>),
    Directory(&'a mut String),
    Url(&'a mut Option<String>),
    ServicePlace(&'a mut Option<String>),
}

impl Field<'_> {
    /// What stands for the value in a help.
    pub(crate) fn value(&self) -> &'static str {
        match self {
            Field::Namespace(_) | Field::Home(_) => "NAMESPACE",
            Field::Namespaces(_) => "NAMESPACE,…",
            Field::Bool(_) => "BOOL",
            Field::Lease(_) | Field::Service(_) => "NAME",
            Field::Duration(_) | Field::Time(_) | Field::GraceTime(_) => "DURATION",
            Field::Install(_) => "WHO",
            Field::File(_) => "FILE",
            Field::Directory(_) => "DIRECTORY",
            Field::ServicePlace(_) => "NAMESPACE/NAME",
            Field::Count(_) | Field::Retries(_) | Field::Number(_) => "NUMBER",
            Field::Address(_) => "ADDRESS",
            Field::Port(_) => "PORT",
            Field::Path(_) => "PATH",
            Field::Level(_) => "LEVEL",
            Field::Format(_) => "FORMAT",
            Field::Collector(_) | Field::Url(_) => "URL",
        }
    }

    /// Puts what a text says there.
    pub(crate) fn read(self, text: &str) -> Result<(), String> {
        match self {
            Field::Namespace(value) => *value = namespaces([text])?,
            Field::Namespaces(value) => *value = namespaces(text.split(','))?,
            Field::Bool(value) => *value = boolean(text)?,
            Field::Home(value) => *value = namespaces([text])?.pop(),
            Field::Lease(value) => *value = lease(text)?,
            Field::Duration(value) => *value = duration(text)?,
            Field::Address(value) => *value = address(text)?,
            Field::Port(value) => *value = port(text)?,
            Field::Path(value) => *value = path(text)?,
            Field::Level(value) => *value = level(text)?,
            Field::Format(value) => *value = format(text)?,
            Field::Collector(value) => *value = endpoint(text, trace::EXPORTED)?,
            Field::Service(value) => *value = service_name(text, trace::EXPORTED)?,
            Field::Install(value) => *value = install(text)?,
            Field::File(value) => *value = optional(text),
            Field::Directory(value) => *value = text.to_owned(),
            Field::Url(value) => *value = url(text)?,
            Field::ServicePlace(value) => *value = service_place(text)?,
            Field::Count(value) => *value = Some(count(text)?),
            Field::Retries(value) => *value = Some(retries(text)?),
            Field::Number(value) => *value = Some(number(text)?),
            Field::Time(value) => *value = Some(duration_above_zero(text)?),
            Field::GraceTime(value) => *value = optional(text).map(|text| duration(&text)).transpose()?,
        }
        Ok(())
    }

    /// Shows what is there, or nothing.
    pub(crate) fn show(self) -> String {
        match self {
            Field::Namespace(value) | Field::Namespaces(value) => value.join(","),
            Field::Bool(value) => value.to_string(),
            Field::Home(value)
            | Field::Lease(value)
            | Field::Collector(value)
            | Field::Service(value)
            | Field::File(value)
            | Field::Url(value)
            | Field::ServicePlace(value) => value.clone().unwrap_or_default(),
            Field::Duration(value) => show(*value),
            Field::Time(value) | Field::GraceTime(value) => value.map(show).unwrap_or_default(),
            Field::Count(value) | Field::Retries(value) => value.map(|count| count.to_string()).unwrap_or_default(),
            Field::Install(value) => shown_install(*value).into(),
            Field::Number(value) => value.map(|number| number.to_string()).unwrap_or_default(),
            Field::Address(value) => value.to_string(),
            Field::Port(value) => value.to_string(),
            Field::Path(value) | Field::Level(value) | Field::Directory(value) => value.clone(),
            Field::Format(value) => shown_format(*value).into(),
        }
    }
}

fn namespaces<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let names = names.into_iter().map(str::trim).filter(|name| !name.is_empty());
    let check = |name: &str| match is_label(name) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "invalid namespace `{name}`: expected lower-case letters, digits and dashes, 63 at most"
        )),
    };
    names.map(check).collect()
}

fn optional(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn lease(text: &str) -> Result<Option<String>, String> {
    match text.is_empty() || (text.len() <= 253 && text.split('.').all(is_label)) {
        true => Ok(optional(text)),
        false => Err(format!(
            "invalid Lease name `{text}`: expected lower-case letters, digits, dashes and dots, 253 at most"
        )),
    }
}

/// Where a server answers, without a path.
fn url(text: &str) -> Result<Option<String>, String> {
    let uri: Option<Uri> = text.parse().ok();
    let is_base = |uri: &Uri| {
        uri.scheme_str() == Some("https") && uri.host().is_some() && uri.path().len() <= 1 && uri.query().is_none()
    };
    match text.is_empty() || uri.as_ref().is_some_and(is_base) {
        true => Ok(optional(text)),
        false => Err(format!("invalid URL `{text}`: write https://127.0.0.1:9443, without a path")),
    }
}

fn service_place(text: &str) -> Result<Option<String>, String> {
    let is_place = |(namespace, name): (&str, &str)| is_label(namespace) && is_label(name);
    match text.is_empty() || text.split_once('/').is_some_and(is_place) {
        true => Ok(optional(text)),
        false => Err(format!("invalid Service `{text}`: write NAMESPACE/NAME")),
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("invalid IP address `{text}`"))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("invalid port `{text}`: expected 0-65535"))
}

fn path(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    match text {
        _ if !text.starts_with('/') => Err(format!("invalid path `{text}`: it must begin with a slash")),
        _ if text.ends_with('/') => Err(format!("invalid path `{text}`: it must not end with a slash")),
        _ if !text.chars().all(plain) => {
            Err(format!("invalid path `{text}`: expected letters, digits, slashes and -_.~"))
        }
        _ => Ok(text.to_owned()),
    }
}

fn install(text: &str) -> Result<CrdInstall, String> {
    match text {
        "leader" => Ok(CrdInstall::Leader),
        "always" => Ok(CrdInstall::Always),
        "never" => Ok(CrdInstall::Never),
        _ => Err(format!("invalid value `{text}`: expected leader, always or never")),
    }
}

fn shown_install(install: CrdInstall) -> &'static str {
    match install {
        CrdInstall::Leader => "leader",
        CrdInstall::Always => "always",
        CrdInstall::Never => "never",
    }
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("invalid count `{text}`: expected a whole number greater than zero"))
}

fn retries(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("invalid count `{text}`: expected a whole number"))
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("invalid number `{text}`: expected a number greater than zero"))
}

fn duration_above_zero(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be greater than zero".into()),
        duration => Ok(duration),
    }
}

/// A duration as Go writes it, or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    let written = || Duration::try_from(text.parse::<SignedDuration>().ok()?).ok();
    let duration = seconds.or_else(written);
    duration.ok_or_else(|| format!("invalid duration `{text}`: write 15s, 1m30s, or a number of seconds"))
}

/// A duration as Go writes it: `1m30s`.
pub(crate) fn show(duration: Duration) -> String {
    let printer = jiff::fmt::friendly::SpanPrinter::new();
    SignedDuration::try_from(duration)
        .map_or_else(|_| "forever".into(), |duration| printer.duration_to_string(&duration).replace(' ', ""))
}

fn level(text: &str) -> Result<String, String> {
    log::filter(text).map(|_| text.to_owned())
}

fn format(text: &str) -> Result<LogFormat, String> {
    match text {
        "auto" => Ok(LogFormat::Auto),
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        _ => Err(format!("invalid format `{text}`: expected auto, json or text")),
    }
}

/// A collector's address, where this build exports.
fn endpoint(text: &str, exported: bool) -> Result<Option<String>, String> {
    let Some(address) = service_name(text, exported)? else {
        return Ok(None);
    };
    let uri: Option<Uri> = address.parse().ok();
    let known = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    match uri.filter(known) {
        Some(_) => Ok(Some(address)),
        None => Err(format!("invalid collector address `{text}`: write http://collector:4318")),
    }
}

/// Whatever is given, where this build exports.
fn service_name(text: &str, exported: bool) -> Result<Option<String>, String> {
    match optional(text) {
        Some(_) if !exported => {
            Err("this program was built without traces: build it with the feature `otel` of flyball \
                                     (`cargo add flyball --features otel`), or leave this out"
                .into())
        }
        given => Ok(given),
    }
}

fn shown_format(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Auto => "auto",
        LogFormat::Json => "json",
        LogFormat::Text => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_traces_refuses_to_be_told_where_they_go() {
        for refused in [endpoint("http://collector:4318", false), service_name("ada", false)] {
            assert!(refused.unwrap_err().contains("`cargo add flyball --features otel`"));
        }
        assert_eq!((endpoint("", false), service_name("", false)), (Ok(None), Ok(None)));
        assert_eq!(endpoint("http://collector:4318", true), Ok(Some("http://collector:4318".into())));
        for text in ["collector:4318", "collector", "grpc://collector:4317", "http://"] {
            assert!(endpoint(text, true).unwrap_err().contains("invalid collector address"), "{text}");
        }
    }

    #[test]
    fn durations_are_go_s_or_seconds() {
        for (text, millis) in [
            ("15", 15_000),
            ("15s", 15_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5s", 1_500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "-1s", "s", "1 fortnight"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(show(Duration::from_secs(90)), "1m30s");
    }
}
