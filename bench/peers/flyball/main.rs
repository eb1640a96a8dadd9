//! The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

use bench::frameworks::{
    tally::{Tally, workers},
    widget::{Widget, WidgetStatus},
};
use flyball::{Action, Context, Controller, Operator, Result};
use kube::Client;
use std::sync::Arc;

async fn reconcile(tally: &Tally, widget: &Widget, ctx: &Context) -> Result {
    if tally.round == 0 {
        tally.reconciled();
    } else if widget.status.as_ref().is_none_or(|status| status.round != tally.round) {
        ctx.set_status(WidgetStatus { round: tally.round, phase: "Ready".into() }).await?;
        tally.written();
    }
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> Result<()> {
    let tally = Arc::new(Tally::of_environment());
    let reconcile = move |widget: Arc<Widget>, ctx: Context| {
        let tally = tally.clone();
        async move { reconcile(&tally, &widget, &ctx).await }
    };
    let controller = Controller::new(reconcile).concurrency(workers().into());
    let operator = Operator::new("bench").controller(controller);
    let _running = operator.start(Client::try_default().await?).await?;
    std::future::pending().await
}
