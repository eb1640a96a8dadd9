//! Our own server, in this process: a tower service, no socket.

use flyball_apiserver::{ApiServer, User};
use flyball_store::Store;

/// A client of a new server of ours, with nothing in it but what every cluster has.
pub async fn client() -> Result<kube::Client, String> {
    client_on(Store::memory()).await
}

/// A client of a new server of ours on a store.
pub async fn client_on(store: Store) -> Result<kube::Client, String> {
    let server = ApiServer::start(store).await.map_err(|error| error.to_string())?;
    Ok(kube::Client::new(server.as_user(User::admin()), "default"))
}
