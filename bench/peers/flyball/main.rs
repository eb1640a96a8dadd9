//! The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

use bench::frameworks::widget::{Widget, WidgetStatus};
use flyball::{Action, Context, Controller, Operator, Result};
use kube::Client;
use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

struct Work {
    /// Zero where nothing is written.
    round: u64,
    reconciled: AtomicU64,
    written: AtomicU64,
}

async fn reconcile(work: &Work, widget: &Widget, ctx: &Context) -> Result {
    if work.round == 0 {
        tell("reconciled", &work.reconciled);
    } else if widget.status.as_ref().is_none_or(|status| status.round != work.round) {
        ctx.set_status(WidgetStatus { round: work.round, phase: "Ready".into() }).await?;
        tell("written", &work.written);
    }
    Ok(Action::await_change())
}

fn tell(word: &str, count: &AtomicU64) {
    let count = count.fetch_add(1, Ordering::Relaxed) + 1;
    if count.is_multiple_of(100) {
        println!("{word} {count}");
    }
}

fn number(name: &str) -> Result<u64> {
    Ok(env::var(name)?.parse()?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let work = Arc::new(Work {
        round: number("ROUND")?,
        reconciled: AtomicU64::default(),
        written: AtomicU64::default(),
    });
    let reconcile = move |widget: Arc<Widget>, ctx: Context| {
        let work = work.clone();
        async move { reconcile(&work, &widget, &ctx).await }
    };
    let controller = Controller::new(reconcile).concurrency(number("WORKERS")? as usize);
    let operator = Operator::new("bench").controller(controller);
    let _running = operator.start(Client::try_default().await?).await?;
    std::future::pending().await
}
