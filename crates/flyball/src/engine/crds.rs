//! Installs the kinds that an operator brings along, where a configuration says, and never over a newer definition.

mod loss;

use crate::declare::timer::fnv1a;
use crate::engine::runtime::Runtime;
use crate::webhook::{endpoint::Endpoint, policy, registration};
use crate::{Backoff, Error, Leadership, Operator, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// The annotation of a definition that names the version of the operator which installed it.
const VERSION: &str = "flyball.dev/operator-version";

/// The annotation of a definition with the hash of what was installed: what the operator no longer has is noticed by it.
const HASH: &str = "flyball.dev/definition-hash";

/// An API server that has accepted a kind serves it within this time.
const ESTABLISHED_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Which replicas install the operator's kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdInstall {
    /// The one that leads, before it reconciles anything.
    #[default]
    Leader,
    /// Each, when it starts.
    Always,
    /// The operator installs none; the administrator does.
    Never,
}

#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error("install CustomResourceDefinition {0}")]
    Apply(String, #[source] kube::Error),
    #[error(
        "install CustomResourceDefinition {0}: install it yourself (the command `crds` prints it) and set `crds.install: never`, or \
         allow the operator to"
    )]
    Forbidden(String, #[source] kube::Error),
    #[error("CustomResourceDefinition {0} is not established: {1}")]
    NotEstablished(String, String),
    #[error(
        "CustomResourceDefinition {name} in the cluster does not serve {versions}, which this operator works with, and is not \
         overwritten because it is {why}: run the release of the operator that brings it, or delete what this operator does not know \
         from the definition (spec.versions, and status.storedVersions after its objects were migrated)"
    )]
    NotServed {
        name: String,
        versions: String,
        why: String,
    },
}

/// How far the installation of an operator's kinds is. Nothing is reconciled before it is done.
#[derive(Debug)]
pub(crate) struct Installation {
    state: watch::Sender<State>,
}

#[derive(Clone, Debug)]
enum State {
    Pending,
    Failed(Arc<str>),
    Done,
}

impl Installation {
    fn pending() -> Installation {
        Installation { state: watch::Sender::new(State::Pending) }
    }

    fn done() -> Installation {
        Installation { state: watch::Sender::new(State::Done) }
    }

    /// Waits until the kinds are installed.
    pub(crate) async fn wait(&self) {
        let mut state = self.state.subscribe();
        let done = state.wait_for(|state| matches!(state, State::Done)).await;
        done.expect("the sender is ours");
    }

    /// Waits until the kinds are installed, or an attempt to install them has failed.
    pub(crate) async fn outcome(&self) -> Result<()> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Pending)).await;
        match &*settled.expect("the sender is ours") {
            State::Failed(failure) => Err(Error::retry(failure.to_string())),
            State::Pending | State::Done => Ok(()),
        }
    }

    /// Why the last attempt failed, if the kinds are not installed yet.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        match &*self.state.borrow() {
            State::Failed(failure) => Some(failure.clone()),
            State::Pending | State::Done => None,
        }
    }
}

/// Installs an operator's CRDs, unless the leader or the administrator installs them.
pub(crate) async fn begin(
    client: &Client,
    operator: &Operator,
    leadership: &Leadership,
    install: CrdInstall,
) -> Result<Installation> {
    match install {
        CrdInstall::Leader if leadership.election().is_some() => return Ok(Installation::pending()),
        CrdInstall::Leader | CrdInstall::Always => self::install(client, operator).await?,
        CrdInstall::Never => {}
    }
    Ok(Installation::done())
}

/// Installs an operator's kinds once this process leads, and tries again for as long as it leads and fails.
pub(crate) async fn install_while_leading(runtime: Arc<Runtime>, operator: Operator, stop: CancellationToken) {
    let leadership = runtime.leadership.clone();
    let state = &runtime.installation.state;
    if matches!(*state.borrow(), State::Done) {
        return;
    }
    loop {
        let term = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            term = leadership.begun() => term,
        };
        let installed = async {
            let mut failures = 0;
            while let Err(error) = install(&runtime.client, &operator).await {
                failures += 1;
                let delay = Backoff::WATCH.delay(failures, &operator.name());
                tracing::error!(failures, retry = ?delay, %error, "the operator's kinds are not installed");
                state.send_replace(State::Failed(error.to_string().into()));
                sleep(delay).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = leadership.lost(term) => drop(state.send_replace(State::Pending)),
            () = installed => {
                state.send_replace(State::Done);
                return;
            }
        }
    }
}

/// Installs an operator's kinds now, except where the cluster has newer ones.
pub(crate) async fn install(client: &Client, operator: &Operator) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(operator.name()).force();
    let endpoint = operator.webhook_endpoint(client.default_namespace());
    for crd in annotated(operator, &endpoint).map(hashed) {
        let name = crd.name_any();
        let failed = |source| match &source {
            kube::Error::Api(status) if status.code == 403 => InstallError::Forbidden(name.clone(), source),
            _ => InstallError::Apply(name.clone(), source),
        };
        let current = api.get_opt(&name).await.map_err(failed)?;
        let installed = match (Verdict::of(current.as_ref(), &crd), current) {
            (Verdict::Same, Some(current)) => current,
            (Verdict::Keep(why), Some(current)) => {
                served(&current, &crd, &why)?;
                tracing::warn!(
                    crd = name,
                    why,
                    "the definition in the cluster is kept, this operator's is not installed"
                );
                current
            }
            (_, current) => {
                if let Some(current) = &current {
                    loss::check(client, current, &crd).await?;
                }
                api.patch(&name, &params, &Patch::Apply(&crd)).await.map_err(failed)?
            }
        };
        established(&api, installed).await?;
        tracing::debug!(crd = name, "installed");
    }
    Ok(())
}

/// An operator's kinds, each with the rules and the conversion that the operator declares, and its version if it has one.
pub(crate) fn annotated(operator: &Operator, endpoint: &Endpoint) -> impl Iterator<Item = CustomResourceDefinition> {
    operator.crds().iter().map(|crd| {
        let mut crd = crd.clone();
        policy::extend_schema(operator, &mut crd);
        registration::set_conversion(operator, &mut crd, endpoint);
        if let Some(version) = operator.own_version() {
            let annotations = crd.metadata.annotations.get_or_insert_default();
            annotations.insert(VERSION.into(), version.into());
        }
        crd
    })
}

fn hashed(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let hash = fnv1a(&[&json(&crd).to_string()]);
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert(HASH.into(), format!("{hash:016x}"));
    crd
}

/// What is to become of a definition.
#[derive(Debug, PartialEq)]
enum Verdict {
    Install,
    /// It is there as it is to be.
    Same,
    /// The one in the cluster is kept, and why.
    Keep(String),
}

impl Verdict {
    fn of(current: Option<&CustomResourceDefinition>, ours: &CustomResourceDefinition) -> Verdict {
        let Some(current) = current else {
            return Verdict::Install;
        };
        let version = |crd: &CustomResourceDefinition| crd.annotations().get(VERSION).cloned();
        let mut drops = false;
        if let (Some(theirs), Some(ours)) = (version(current), version(ours)) {
            if is_newer(&theirs, &ours) {
                return Verdict::Keep(format!("of version {theirs} of the operator, newer than {ours}"));
            }
            drops = is_newer(&ours, &theirs);
        }
        let unknown = unknown_versions(current, ours, drops);
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            return Verdict::Keep(format!("serving or storing {unknown}, which this operator does not know"));
        }
        match covers(&json(current), &json(ours)) {
            true => Verdict::Same,
            false => Verdict::Install,
        }
    }
}

/// The part of a definition that an operator decides.
fn json(crd: &CustomResourceDefinition) -> Value {
    let annotations = crd.metadata.annotations.clone().unwrap_or_default();
    let labels = crd.metadata.labels.clone().unwrap_or_default();
    serde_json::json!({ "annotations": annotations, "labels": labels, "spec": crd.spec })
}

/// The versions that a definition serves or has stored objects in, and that ours does not have. A newer operator `drops` those that
/// are only served.
fn unknown_versions(current: &CustomResourceDefinition, ours: &CustomResourceDefinition, drops: bool) -> Vec<String> {
    let served = current
        .spec
        .versions
        .iter()
        .filter(|version| version.served && !drops)
        .map(|version| &version.name);
    let stored = current.status.iter().flat_map(|status| status.stored_versions.iter().flatten());
    let mut unknown: Vec<_> = served
        .chain(stored)
        .filter(|name| !ours.spec.versions.iter().any(|version| version.name == **name))
        .cloned()
        .collect();
    unknown.sort();
    unknown.dedup();
    unknown
}

/// Refuses a definition that serves none of the versions that the operator works with.
fn served(current: &CustomResourceDefinition, ours: &CustomResourceDefinition, why: &str) -> Result<(), InstallError> {
    let needed: Vec<_> = ours
        .spec
        .versions
        .iter()
        .filter(|version| version.served)
        .map(|version| &*version.name)
        .collect();
    let serves = |name: &&str| current.spec.versions.iter().any(|version| version.served && version.name == **name);
    match needed.iter().any(serves) {
        true => Ok(()),
        false => Err(InstallError::NotServed {
            name: ours.name_any(),
            versions: needed.join(", "),
            why: why.to_owned(),
        }),
    }
}

/// Whether a value has everything that another has. The API server adds defaults.
pub(crate) fn covers(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| covers(value, part)))
        }
        (Value::Array(value), Value::Array(part)) => {
            value.len() == part.len() && value.iter().zip(part).all(|(value, part)| covers(value, part))
        }
        (Value::Number(value), Value::Number(part)) => value.as_f64() == part.as_f64(),
        (value, part) => value == part,
    }
}

/// Whether a version comes after another, as semantic versioning orders numbers and pre-releases; no, if either is no version.
fn is_newer(version: &str, than: &str) -> bool {
    let parsed = |version: &str| {
        let version = version.strip_prefix('v').unwrap_or(version).split('+').next()?.to_owned();
        let (numbers, pre) = version.split_once('-').map_or((&*version, None), |(numbers, pre)| (numbers, Some(pre)));
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|number| number.parse().ok()).collect();
        // A release comes after its pre-releases.
        Some((numbers?, pre.is_none(), pre.map(identifiers)))
    };
    parsed(version).zip(parsed(than)).is_some_and(|(version, than)| version > than)
}

/// The identifiers of a pre-release: numbers come before words and in their own order.
fn identifiers(pre: &str) -> Vec<(bool, u64, String)> {
    let identifier = |text: &str| match text.parse() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, text.to_owned()),
    };
    pre.split('.').map(identifier).collect()
}

async fn established(api: &Api<CustomResourceDefinition>, mut crd: CustomResourceDefinition) -> Result<()> {
    let name = crd.name_any();
    let deadline = Instant::now() + ESTABLISHED_TIMEOUT;
    while !is_established(&crd) {
        if Instant::now() >= deadline {
            return Err(Error::retry(InstallError::NotEstablished(name, conditions(&crd))));
        }
        sleep(POLL_INTERVAL).await;
        crd = api.get(&name).await.map_err(|source| InstallError::Apply(name.clone(), source))?;
    }
    Ok(())
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn conditions(crd: &CustomResourceDefinition) -> String {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.filter(|condition| condition.status != "True");
    let said: Vec<_> = failed.filter_map(|condition| condition.message.clone()).collect();
    if said.is_empty() {
        "the API server does not say why".into()
    } else {
        said.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_semantic_versioning_says() {
        let ascending = [
            "0.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.0.1",
            "v1.9.0",
            "1.10.0+build.5",
            "2.0.0",
        ];
        for (count, version) in ascending.iter().enumerate() {
            for (other, earlier) in ascending.iter().enumerate() {
                assert_eq!(is_newer(version, earlier), count > other, "{version} {earlier}");
            }
        }
        assert!(!is_newer("latest", "1.0.0") && !is_newer("1.0.0", "main"));
    }

    #[test]
    fn defaults_that_the_server_adds_make_no_difference() {
        let there = serde_json::json!({ "a": { "b": 1, "added": true }, "list": [{ "c": 2.0, "added": 1 }] });
        assert!(covers(&there, &serde_json::json!({ "a": { "b": 1.0 }, "list": [{ "c": 2 }] })));
        for part in [
            serde_json::json!({ "a": { "b": 2 } }),
            serde_json::json!({ "z": 1 }),
            serde_json::json!({ "list": [] }),
        ] {
            assert!(!covers(&there, &part), "{part}");
        }
    }
}
