//! `/healthz`, `/livez` and `/readyz`. A server that can answer at all is healthy: its store is a part of the process.

use crate::Body;
use crate::encoding::output;
use crate::request::info::Query;
use http::{Response, StatusCode};

const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];
const CHECKS: [&str; 2] = ["ping", "store"];

/// Answers a request to a health path.
pub fn respond(path: &str, query: &Query) -> Response<Body> {
    let path = &path[1..];
    match path.split_once('/') {
        None if ENDPOINTS.contains(&path) => all(path, query),
        Some((_, check)) if CHECKS.contains(&check) => {
            let mut response = output::text(StatusCode::OK, "ok");
            response.headers_mut().remove("x-content-type-options");
            response
        }
        _ => output::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// The paths that are answered.
pub fn paths() -> impl Iterator<Item = String> {
    ENDPOINTS.iter().flat_map(|endpoint| {
        let checks = CHECKS.iter().map(move |check| format!("/{endpoint}/{check}"));
        checks.chain([format!("/{endpoint}")])
    })
}

fn all(endpoint: &str, query: &Query) -> Response<Body> {
    if query.all("verbose").next().is_none() {
        return output::text(StatusCode::OK, "ok");
    }
    let mut text = String::new();
    for check in CHECKS {
        let excluded = query.all("exclude").any(|name| name == check);
        text.push_str(&format!("[+]{check} {}\n", if excluded { "excluded: ok" } else { "ok" }));
    }
    let unknown: Vec<String> = query
        .all("exclude")
        .filter(|name| !CHECKS.contains(name))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        text.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            unknown.join(",")
        ));
    }
    text.push_str(&format!("{endpoint} check passed\n"));
    output::text(StatusCode::OK, text)
}
