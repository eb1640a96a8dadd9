//! The server that the frameworks work against, started once for all of them.

use super::Server;
use crate::{
    server::start::{Ours, Peer},
    target::Target,
};

/// A running server.
pub struct Cluster {
    /// The way in.
    pub target: Target,
    _running: Running,
}

/// Held for as long as it should run.
enum Running {
    Reference(#[expect(dead_code, reason = "dropped last")] Box<Peer>),
    Flyball(#[expect(dead_code, reason = "dropped last")] Box<Ours>),
}

impl Cluster {
    pub async fn start(server: Server) -> Cluster {
        eprintln!("bench: starting {}", server.name());
        match server {
            Server::Reference => {
                let peer = Peer::start().await;
                Cluster {
                    target: peer.target.clone(),
                    _running: Running::Reference(Box::new(peer)),
                }
            }
            Server::Flyball => {
                crate::server::start::build();
                let ours = Ours::start().await;
                Cluster {
                    target: ours.target.clone(),
                    _running: Running::Flyball(Box::new(ours)),
                }
            }
        }
    }
}
