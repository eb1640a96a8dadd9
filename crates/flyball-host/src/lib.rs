//! What the servers of Flyball take from the machine they run on: the time, a bounded number of connections, file descriptors
//! and files that only their owner can read. It knows no Kubernetes.

pub mod accept;
pub mod activity;
pub mod clock;
pub mod connections;
pub mod http1;
pub mod limits;
pub mod private;

pub use clock::Clock;
pub use connections::Connections;
