//! Definitions that another server wrote to the store that both share: they are served here too, a moment later.

use crate::crd::{definition_kind, refresh};
use crate::server::{ApiServer, Inner};
use crate::status::{Result, Status};
use std::sync::Weak;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long to wait before a store that failed is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Brings what is served in line with every change of a definition, until the server is gone.
pub(crate) fn follow(server: Weak<Inner>) -> AbortHandle {
    tokio::spawn(async move {
        while let Some(here) = ApiServer::again(&server) {
            let failure = watch(here, &server).await;
            if let Err(error) = failure {
                tracing::warn!(%error, "the definitions of other servers are not followed; trying again");
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
    .abort_handle()
}

/// Watches first and refreshes then, so that nothing falls between; keeps no server alive while it waits.
async fn watch(here: ApiServer, server: &Weak<Inner>) -> Result<()> {
    let prefix = definition_kind(&here).prefix(None);
    let mut changes = here.store().watch(prefix, here.store().revision()).await.map_err(Status::internal)?;
    refresh(&here).await?;
    drop(here);
    while let Some(change) = changes.next().await {
        change.map_err(Status::internal)?;
        let Some(here) = ApiServer::again(server) else { break };
        refresh(&here).await?;
    }
    Ok(())
}
