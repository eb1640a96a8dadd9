//! Probes, answered as Kubernetes' own components do: `ok`, or which check failed; `?verbose` tells all, `?exclude=` skips some.

use crate::declare::check::Check;
use crate::engine::runtime::Runtime;
use axum::{
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use std::{collections::HashSet, fmt::Write, sync::Arc, time::Duration};

/// How long after its lease ran out a process may believe to lead (kube-controller-manager's watch dog: 20 s).
const TOLERANCE: Duration = Duration::from_secs(20);

/// How long a kind that was listed may not be watched before that counts: an API server restarts in less.
const FAILING: Duration = Duration::from_secs(30);

/// The answer to one question: its name, and what is well or wrong.
type Answer = (String, Result<String, String>);

pub(crate) async fn live(State(operator): State<Arc<Runtime>>, RawQuery(query): RawQuery) -> Response {
    report("livez", liveness(&operator), &query.unwrap_or_default())
}

pub(crate) async fn ready(State(operator): State<Arc<Runtime>>, RawQuery(query): RawQuery) -> Response {
    report("readyz", readiness(&operator), &query.unwrap_or_default())
}

pub(crate) async fn live_one(State(operator): State<Arc<Runtime>>, Path(check): Path<String>) -> Response {
    single(&check, liveness(&operator))
}

pub(crate) async fn ready_one(State(operator): State<Arc<Runtime>>, Path(check): Path<String>) -> Response {
    single(&check, readiness(&operator))
}

/// Whether the process is to be kept.
fn liveness(operator: &Runtime) -> Vec<Answer> {
    let mut answers = vec![("ping".to_owned(), Ok(String::new()))];
    for leadership in &operator.elections {
        let name = format!("lease-{}", leadership.election().unwrap_or_default());
        answers.push((name, leadership.check(TOLERANCE).map(|()| String::new())));
    }
    answers.extend(asked(&operator.checks.live));
    answers
}

/// Whether the process can do its work, or take it over at once.
fn readiness(operator: &Runtime) -> Vec<Answer> {
    let mut answers = vec![("ping".to_owned(), Ok(String::new()))];
    for mirror in operator.cache.mirrors_in_order() {
        let watch = mirror.watch_state();
        let name = match &*watch.selector {
            "" => format!("cache-{}", mirror.kind().resource.plural),
            selector => format!("cache-{}:{selector}", mirror.kind().resource.plural),
        };
        let failure = watch.last_error.map(|error| error.to_string());
        let failing = watch.failing_since.map(|since| since.elapsed()).unwrap_or_default();
        answers.push((
            name,
            match failure {
                Some(failure) if !watch.synced || failing > FAILING => Err(failure),
                None if !watch.synced => Err("not listed yet".into()),
                None if !watch.installed => Ok("not installed".into()),
                failure => Ok(failure.unwrap_or_default()),
            },
        ));
    }
    for leadership in &operator.elections {
        let name = format!("lease-{}", leadership.election().unwrap_or_default());
        let role = match leadership.leader() {
            _ if leadership.is_leading() => "leader".to_owned(),
            Some(leader) => format!("follower of {leader}"),
            None => "follower, no leader".to_owned(),
        };
        answers.push((name, leadership.check(TOLERANCE).map(|()| role)));
    }
    let installed = operator
        .installation
        .failure()
        .map_or(Ok(String::new()), |failure| Err(failure.to_string()));
    answers.push(("crds".to_owned(), installed));
    answers.extend(asked(&operator.checks.ready));
    answers.push((
        "shutdown".into(),
        if operator.stop.is_cancelled() {
            Err("stopping".into())
        } else {
            Ok(String::new())
        },
    ));
    answers
}

fn asked(checks: &[Check]) -> impl Iterator<Item = Answer> {
    checks.iter().map(|check| (check.name.clone(), (check.ask)().map(|()| String::new())))
}

/// As kube-apiserver's `healthz.go`, `handleRootHealth`, except that reasons are given.
fn report(probe: &str, answers: Vec<Answer>, query: &str) -> Response {
    let parameters: Vec<_> = query
        .split('&')
        .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
        .collect();
    let verbose = parameters.iter().any(|(name, _)| *name == "verbose");
    let excluded: HashSet<_> = parameters
        .iter()
        .filter(|(name, _)| *name == "exclude")
        .map(|(_, check)| *check)
        .collect();
    let mut text = String::new();
    let mut failed = false;
    for (name, answer) in &answers {
        let line = match answer {
            _ if excluded.contains(&**name) => writeln!(text, "[+]{name} excluded: ok"),
            Ok(role) if role.is_empty() => writeln!(text, "[+]{name} ok"),
            Ok(role) => writeln!(text, "[+]{name} ok: {role}"),
            Err(reason) => {
                failed = true;
                writeln!(text, "[-]{name} failed: {reason}")
            }
        };
        line.expect("a String takes whatever is written to it");
    }
    for check in excluded.iter().filter(|check| !answers.iter().any(|(name, _)| name == **check)) {
        writeln!(text, "warn: some health checks cannot be excluded: no matches for {check:?}").expect("as above");
    }
    match (failed, verbose) {
        (true, _) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{text}{probe} check failed\n")).into_response(),
        (false, true) => format!("{text}{probe} check passed\n").into_response(),
        (false, false) => "ok".into_response(),
    }
}

fn single(check: &str, answers: Vec<Answer>) -> Response {
    match answers.into_iter().find(|(name, _)| name == check) {
        None => (StatusCode::NOT_FOUND, format!("there is no check {check:?}\n")).into_response(),
        Some((_, Ok(_))) => "ok".into_response(),
        Some((_, Err(reason))) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")).into_response()
        }
    }
}
