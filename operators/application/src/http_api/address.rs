//! The environment variables of the HTTP API: `HOST`, `PORT` and `ALLOWED_HOSTS`.

use flyball::{Error, Result};
use std::{
    env,
    net::{IpAddr, SocketAddr},
};

/// `HOST` and `PORT`, by default 127.0.0.1 and 3000.
pub(super) fn from_environment() -> Result<SocketAddr> {
    parse(&variable("HOST", "127.0.0.1"), &variable("PORT", "3000"))
}

/// The comma-separated names of `ALLOWED_HOSTS`.
pub(super) fn allowed_hosts() -> Vec<String> {
    let names = variable("ALLOWED_HOSTS", "");
    names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn variable(name: &str, default: &str) -> String {
    env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| default.into())
}

fn parse(host: &str, port: &str) -> Result<SocketAddr> {
    let host: IpAddr = host
        .parse()
        .map_err(|_| Error::permanent(format!("invalid HOST {host:?}: expected an IP address")))?;
    let port = port
        .parse()
        .map_err(|_| Error::permanent(format!("invalid PORT {port:?}: expected 0-65535")))?;
    Ok(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_address_names_its_variable() {
        assert_eq!(parse("::1", "0").unwrap().to_string(), "[::1]:0");
        let port = parse("127.0.0.1", "65536").unwrap_err().to_string();
        assert!(port.contains("invalid PORT \"65536\": expected 0-65535"), "{port}");
        let host = parse("localhost", "80").unwrap_err().to_string();
        assert!(host.contains("invalid HOST \"localhost\": expected an IP address"), "{host}");
    }
}
