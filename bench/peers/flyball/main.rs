//! The same work as every peer's: see bench/src/frameworks.rs for the words on standard output.

use bench::frameworks::{
    tally::{Tally, workers},
    widget::{Widget, WidgetStatus, child_data, team},
};
use flyball::{Action, Context, Controller, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use std::sync::Arc;

async fn reconcile(tally: &Tally, widget: &Widget, ctx: &Context) -> Result {
    if tally.round == 0 {
        tally.reconciled();
    } else if widget.status.as_ref().is_none_or(|status| status.round != tally.round) {
        if tally.has_child {
            apply_child(tally, widget, ctx).await?;
        }
        ctx.set_status(WidgetStatus { round: tally.round, phase: "Ready".into() }).await?;
        tally.written();
    }
    Ok(Action::await_change())
}

/// Reads a Secret and a ServiceAccount from the cache, and applies a ConfigMap of both.
async fn apply_child(tally: &Tally, widget: &Widget, ctx: &Context) -> Result<()> {
    let team = team(widget);
    let secret = ctx.get::<Secret>(&*team).await?.ok_or("the team has no Secret")?;
    let account = ctx.get::<ServiceAccount>(&*team).await?.ok_or("the team has no ServiceAccount")?;
    let data = Some(child_data(tally.round, widget, &secret, &account));
    ctx.apply(ConfigMap { data, ..ConfigMap::default() }).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let tally = Arc::new(Tally::of_environment());
    let has_child = tally.has_child;
    let reconcile = move |widget: Arc<Widget>, ctx: Context| {
        let tally = tally.clone();
        async move { reconcile(&tally, &widget, &ctx).await }
    };
    let mut controller = Controller::new(reconcile).concurrency(workers().into());
    if has_child {
        controller = controller.owns::<ConfigMap>().reads::<Secret>().reads::<ServiceAccount>();
    }
    flyball::run(Operator::new("bench").controller(controller)).await
}
