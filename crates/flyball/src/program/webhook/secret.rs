//! The Secret that replicas share their authority by. Writes are conditional, so that the first of two replicas wins.

use crate::program::webhook::authority::Authority;
use crate::{Error, Result};
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};

/// The key with all of it; the bundle is in `ca.crt` as well, where others look for it.
const AUTHORITY: &str = "authority.json";
const BUNDLE: &str = "ca.crt";

/// How often a write that lost against another replica's is tried again.
const MAX_ATTEMPTS: usize = 5;

/// The name of an operator's Secret.
pub(crate) fn name(operator: &str) -> String {
    format!("{operator}-webhook-ca")
}

/// The authority as it is to be now: it is read, made if there is none, and taken further if that is due.
pub(crate) async fn authority(
    api: &Api<Secret>,
    operator: &str,
    now: Timestamp,
    injected: Injected<'_>,
) -> Result<Authority> {
    let name = name(operator);
    for _ in 0..MAX_ATTEMPTS {
        let current = api.get_opt(&name).await?;
        let known = current.as_ref().and_then(read);
        let next = match &known {
            Some(known) => {
                let trusted = known.bundle() == injected.bundle;
                known.step(operator, now, trusted).map_err(Error::retry)?
            }
            None => {
                if current.is_some() {
                    tracing::warn!(
                        secret = name,
                        "the Secret of the webhooks' authority is not readable; it is replaced"
                    );
                }
                Some(Authority::new(operator, now).map_err(Error::retry)?)
            }
        };
        let Some(next) = next else {
            return Ok(known.expect("an absent authority is made"));
        };
        if write(api, current, &name, operator, &next).await? {
            tracing::info!(secret = name, signer = next.signer(), "the webhooks' authority has changed");
            return Ok(next);
        }
    }
    Err(Error::retry(format!("write Secret {name}: others write it at the same time")))
}

/// The bundle that the API server is known to trust.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Injected<'a> {
    pub(crate) bundle: &'a str,
}

fn read(secret: &Secret) -> Option<Authority> {
    let ByteString(text) = secret.data.as_ref()?.get(AUTHORITY)?;
    serde_json::from_slice(text).ok()
}

/// Whether the Secret was written; not if another replica was faster.
async fn write(
    api: &Api<Secret>,
    current: Option<Secret>,
    name: &str,
    operator: &str,
    authority: &Authority,
) -> Result<bool> {
    let text = serde_json::to_vec(authority)?;
    let data = [(AUTHORITY, text), (BUNDLE, authority.bundle().into_bytes())];
    let data = data.into_iter().map(|(key, bytes)| (key.to_owned(), ByteString(bytes))).collect();
    let labels = [("app.kubernetes.io/name".to_owned(), operator.to_owned())].into();
    let is_new = current.is_none();
    let metadata = match current {
        Some(current) => current.metadata,
        None => ObjectMeta {
            name: Some(name.into()),
            labels: Some(labels),
            ..Default::default()
        },
    };
    let secret = Secret { metadata, data: Some(data), ..Default::default() };
    let params = PostParams::default();
    let written = match is_new {
        true => api.create(&params, &secret).await,
        false => api.replace(name, &params, &secret).await,
    };
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}
