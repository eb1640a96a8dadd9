//! What is done for one Application: three children applied, one status told.

use crate::{api::Application, desired, status::status};
use flyball::{Action, Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use std::sync::Arc;

/// Brings the children of an Application to what its spec asks for, and its status to what they say.
pub async fn reconcile(application: Arc<Application>, ctx: Context) -> Result {
    ctx.apply(desired::config_map(&application)).await?;
    ctx.apply(desired::service(&application)).await?;
    ctx.apply(desired::deployment(&application)).await?;
    let deployment = ctx.get::<Deployment>(application.name_any()).await?.unwrap_or_default();
    ctx.set_status(status(&application, &deployment, &ctx)).await?;
    Ok(Action::await_change())
}
