//! Installs the kinds that an operator brings along, and waits until the API server serves them.

use crate::{Error, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// An API server that has accepted a kind serves it within this time.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
enum InstallError {
    #[error("install CustomResourceDefinition {0}")]
    Apply(String, #[source] kube::Error),
    #[error("CustomResourceDefinition {0} is not established: {1}")]
    NotEstablished(String, String),
}

pub(crate) async fn install(client: &Client, manager: &str, crds: &[CustomResourceDefinition]) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(manager).force();
    for crd in crds {
        let name = crd.name_any();
        let failed = |source| InstallError::Apply(name.clone(), source);
        let installed = api.patch(&name, &params, &Patch::Apply(crd)).await.map_err(failed)?;
        established(&api, installed).await?;
        tracing::debug!(crd = name, "installed");
    }
    Ok(())
}

async fn established(api: &Api<CustomResourceDefinition>, mut crd: CustomResourceDefinition) -> Result<()> {
    let name = crd.name_any();
    let deadline = Instant::now() + PATIENCE;
    while !is_established(&crd) {
        if Instant::now() >= deadline {
            return Err(Error::retry(InstallError::NotEstablished(name, conditions(&crd))));
        }
        sleep(POLL).await;
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
