//! Validation of a WebhookClientConfig: the URL or the Service of a webhook.
// apiserver/pkg/util/webhook/validation.go

use crate::names;
use crate::violation::Violation;
use serde_json::Value;

/// Validates a `clientConfig` at a path.
pub(crate) fn validate(config: &Value, path: &str) -> Vec<Violation> {
    match (&config["url"], &config["service"]) {
        (Value::String(url), Value::Null) => validate_url(url, &format!("{path}.url")),
        (Value::Null, service @ Value::Object(_)) => validate_service(service, &format!("{path}.service")),
        _ => vec![Violation::required(path, "exactly one of url or service is required")],
    }
}

fn validate_url(url: &str, path: &str) -> Vec<Violation> {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() {
        ""
    } else {
        rest.split('/').next().unwrap_or_default()
    };
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let mut found = Vec::new();
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        found.push(Violation::invalid(path, scheme, &why));
    }
    if host.is_empty() {
        found.push(Violation::invalid(path, host, &format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        found.push(Violation::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        found.push(Violation::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        found.push(Violation::invalid(path, query, "query parameters are not permitted in the URL"));
    }
    found
}

fn validate_service(service: &Value, path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    // Upstream's callers pass name and namespace in the wrong order, so that each is reported as the other.
    for (field, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service[field].as_str().unwrap_or_default().is_empty() {
            found.push(Violation::required(format!("{path}.{shown}"), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        found.push(Violation::invalid(format!("{path}.port"), port, why));
    }
    found.extend(validate_path(service["path"].as_str().unwrap_or_default(), &format!("{path}.path")));
    found
}

fn validate_path(given: &str, path: &str) -> Vec<Violation> {
    if given.is_empty() || given == "/" {
        return Vec::new();
    }
    let invalid = |why: &str| Violation::invalid(path, given, why);
    if given == "//" {
        return vec![invalid("segment[0] may not be empty")];
    }
    let mut found = Vec::new();
    if !given.starts_with('/') {
        found.push(invalid("must start with a '/'"));
    }
    let steps = given.strip_prefix('/').unwrap_or_else(|| given.get(1..).unwrap_or_default());
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            found.push(invalid(&format!("segment[{index}] may not be empty")));
            continue;
        }
        let failures = names::dns1123_subdomain(step);
        found.extend(failures.iter().map(|failure| invalid(&format!("segment[{index}]: {failure}"))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_config_has_one_valid_address() {
        let service = |path: &str| json!({"service": {"namespace": "n", "name": "s", "path": path}});
        for (config, expected) in [
            (json!({"url": "https://h.dev/a"}), vec![]),
            (json!({}), vec!["c: Required value: exactly one of url or service is required"]),
            (
                json!({"url": "http://h.dev"}),
                vec![
                    "c.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: \
                     https://host[/path]",
                ],
            ),
            (
                json!({"url": "https://me@h.dev/a?b=c#d"}),
                vec![
                    "c.url: Invalid value: \"me\": user information is not permitted in the URL",
                    "c.url: Invalid value: \"d\": fragments are not permitted in the URL",
                    "c.url: Invalid value: \"b=c\": query parameters are not permitted in the URL",
                ],
            ),
            (service("/a/b"), vec![]),
            (service("a"), vec!["c.service.path: Invalid value: \"a\": must start with a '/'"]),
            (json!({"service": {"name": "s"}}), vec!["c.service.name: Required value"]),
        ] {
            let found: Vec<String> = validate(&config, "c").iter().map(ToString::to_string).collect();
            assert!(
                found.starts_with(&expected.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "{found:?}"
            );
            assert_eq!(found.is_empty(), expected.is_empty(), "{config}: {found:?}");
        }
    }
}
