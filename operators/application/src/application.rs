//! What is done for one Application: three children applied, one status told.

use crate::{
    api::{Application, ApplicationStatus, Phase},
    desired,
    status::status,
};
use flyball::{Action, Context, Event, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use std::sync::Arc;

/// Brings the children of an Application to what its spec asks for, and its status to what they say.
pub async fn reconcile(application: Arc<Application>, ctx: Context) -> Result {
    ctx.apply(desired::config_map(&application)).await?;
    ctx.apply(desired::service(&application)).await?;
    ctx.apply(desired::deployment(&application)).await?;
    let deployment = ctx.get::<Deployment>(application.name_any()).await?.unwrap_or_default();
    let status = status(&application, &deployment, &ctx);
    let before = application.status.as_ref().map(|status| status.phase);
    let event = (before != Some(status.phase)).then(|| announce(&status));
    ctx.set_status(status).await?;
    event.into_iter().for_each(|event| ctx.event(event));
    Ok(Action::await_change())
}

/// What `kubectl describe` tells of a new phase.
fn announce(status: &ApplicationStatus) -> Event {
    let message = |kind: &str| {
        let condition = status.conditions.iter().find(|condition| condition.type_ == kind);
        condition.map_or_else(String::new, |condition| condition.message.clone())
    };
    match status.phase {
        Phase::Pending => Event::normal("RollingOut", message("Progressing")),
        Phase::Running => Event::normal("Running", message("Ready")),
        Phase::Failed => Event::warning("RolloutStuck", message("Progressing")),
    }
}
