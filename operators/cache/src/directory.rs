//! The directory outside the cluster in which caches are registered.

use flyball::{Key, Result};

/// A service that knows the addresses of all caches. Both calls may be repeated.
pub trait Directory: Send + Sync + 'static {
    /// Registers a cache.
    fn register(&self, cache: &Key, address: &str) -> impl Future<Output = Result<()>> + Send;

    /// Removes a cache.
    fn remove(&self, cache: &Key) -> impl Future<Output = Result<()>> + Send;
}

/// No directory.
#[derive(Clone, Copy, Debug)]
pub struct Absent;

impl Directory for Absent {
    async fn register(&self, _cache: &Key, _address: &str) -> Result<()> {
        Ok(())
    }

    async fn remove(&self, _cache: &Key) -> Result<()> {
        Ok(())
    }
}
