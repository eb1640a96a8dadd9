//! `/healthz`, `/livez` and `/readyz`: whether the server, and the store that it depends on, can serve requests.
// apiserver/pkg/server/healthz/healthz.go

use crate::Body;
use crate::encoding::output;
use crate::request::info::Query;
use flyball_store::Store;
use http::{Response, StatusCode};

const ENDPOINTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Marks the requests of a server that is shutting down; an extension of them.
#[derive(Clone, Copy, Debug)]
pub struct ShuttingDown;

/// One thing that a healthy server has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// The server answers.
    Ping,
    /// The store reads and commits.
    Store,
    /// The server is not about to stop.
    Shutdown,
}

impl Check {
    /// The checks of an endpoint, in the order in which they are reported.
    fn of(endpoint: &str) -> &'static [Check] {
        match endpoint {
            "readyz" => &[Check::Ping, Check::Store, Check::Shutdown],
            _ => &[Check::Ping, Check::Store],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Check::Ping => "ping",
            Check::Store => "store",
            Check::Shutdown => "shutdown",
        }
    }

    /// Fails with the reason.
    async fn run(self, state: &State<'_>) -> Result<(), String> {
        match self {
            Check::Ping => Ok(()),
            Check::Store => match state.store.health().await.reason() {
                None => Ok(()),
                Some(reason) => Err(reason.to_owned()),
            },
            Check::Shutdown if state.shutting_down => Err("process is shutting down".into()),
            Check::Shutdown => Ok(()),
        }
    }
}

/// What the checks look at.
pub(crate) struct State<'a> {
    pub store: &'a Store,
    pub shutting_down: bool,
}

/// Answers a request to a health path.
pub(crate) async fn respond(path: &str, query: &Query, state: &State<'_>) -> Response<Body> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (endpoint, check) = path.split_once('/').map_or((path, None), |(endpoint, check)| (endpoint, Some(check)));
    if !ENDPOINTS.contains(&endpoint) {
        return output::text(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let Some(name) = check else {
        return all(endpoint, query, state).await;
    };
    match Check::of(endpoint).iter().find(|check| check.name() == name) {
        Some(check) => one(*check, state).await,
        None => output::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// The paths that are answered.
pub fn paths() -> impl Iterator<Item = String> {
    ENDPOINTS.iter().flat_map(|endpoint| {
        let checks = Check::of(endpoint).iter().map(move |check| format!("/{endpoint}/{}", check.name()));
        checks.chain([format!("/{endpoint}")])
    })
}

async fn one(check: Check, state: &State<'_>) -> Response<Body> {
    match check.run(state).await {
        Ok(()) => {
            let mut response = output::text(StatusCode::OK, "ok");
            response.headers_mut().remove("x-content-type-options");
            response
        }
        Err(reason) => {
            let text = format!("internal server error: {reason}\n");
            output::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

async fn all(endpoint: &str, query: &Query, state: &State<'_>) -> Response<Body> {
    let checks = Check::of(endpoint);
    let (mut text, mut failed) = (String::new(), false);
    for check in checks {
        let name = check.name();
        if query.all("exclude").any(|excluded| excluded == name) {
            text.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        match check.run(state).await {
            Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
            Err(reason) => {
                // Health is public, so the reason goes to the log only.
                tracing::warn!(endpoint, check = name, reason, "a health check failed");
                text.push_str(&format!("[-]{name} failed: reason withheld\n"));
                failed = true;
            }
        }
    }
    text.push_str(&unknown(query, checks));
    if failed {
        let text = format!("{text}{endpoint} check failed\n");
        return output::text(StatusCode::INTERNAL_SERVER_ERROR, text);
    }
    match query.all("verbose").next() {
        None => output::text(StatusCode::OK, "ok"),
        Some(_) => output::text(StatusCode::OK, format!("{text}{endpoint} check passed\n")),
    }
}

/// A line about checks that cannot be excluded because there are none of these names.
fn unknown(query: &Query, checks: &[Check]) -> String {
    let is_known = |name: &str| checks.iter().any(|check| check.name() == name);
    let mut names: Vec<String> = query
        .all("exclude")
        .filter(|name| !is_known(name))
        .map(|name| format!("{name:?}"))
        .collect();
    names.sort();
    names.dedup();
    match &names[..] {
        [] => String::new(),
        names => format!("warn: some health checks cannot be excluded: no matches for {}\n", names.join(",")),
    }
}
