//! Validation of the DNS configuration of pods.
// pkg/apis/core/validation/validation.go, validatePodDNSConfig and ValidateHostAliases

use crate::builtin::rules::{address, subdomain};
use crate::builtin::spot::{Found, Spot};
use crate::names;

const MOST_SERVERS: usize = 3;
const MOST_SEARCHES: usize = 32;

/// `dnsConfig`.
pub(super) fn config(spec: &Spot<'_>, found: &mut Found) {
    let config = spec.field("dnsConfig");
    let (servers, searches) = (config.field("nameservers"), config.field("searches"));
    if spec.field("dnsPolicy").text() == "None" {
        if !config.is_set() {
            return config.required(found, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.len() == 0 {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return servers.required(found, why);
        }
    }
    if servers.len() > MOST_SERVERS {
        servers.invalid(found, &format!("must not have more than {MOST_SERVERS} nameservers"));
    }
    servers.items().for_each(|server| address(&server, found));
    if searches.len() > MOST_SEARCHES {
        searches.invalid(found, &format!("must not have more than {MOST_SEARCHES} search paths"));
    }
    searches.items().for_each(|search| searched(&search, found));
    for option in config.field("options").items() {
        if option.field("name").text().is_empty() {
            option.required(found, "must not be empty");
        }
    }
}

fn searched(search: &Spot<'_>, found: &mut Found) {
    let domain = search.text().strip_suffix('.').unwrap_or(search.text());
    if search.text() != "." {
        let wrong = names::dns1123_subdomain_with_underscore(domain);
        wrong.iter().for_each(|why| search.invalid_as(found, domain, why));
    }
}

/// `hostAliases`.
pub(super) fn aliases(aliases: &Spot<'_>, found: &mut Found) {
    for alias in aliases.items() {
        address(&alias.field("ip"), found);
        alias.field("hostnames").items().for_each(|name| subdomain(&name, found));
    }
}
