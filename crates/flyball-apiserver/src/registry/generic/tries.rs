//! How often a write is repeated because other requests interfere: a bounded number of times, and not past the deadline.

use crate::request::context::ResourceRequest;
use crate::status::{Result, Status};
use tokio::time::Instant;

/// How often a write is tried. Of concurrent writes of one object one succeeds each time, so it takes as many writers to
/// reach this number.
const MAX_TRIES: usize = 1000;
/// How many names are generated for an object.
const MAX_NAMES: usize = 8;

/// Counts the attempts of one write.
pub(crate) struct Tries<'a> {
    request: &'a ResourceRequest,
    verb: &'static str,
    tries: usize,
    names: usize,
}

impl<'a> Tries<'a> {
    /// Of a write by a request.
    pub fn new(request: &'a ResourceRequest, verb: &'static str) -> Tries<'a> {
        Tries { request, verb, tries: 1, names: 1 }
    }

    /// Permits one more attempt after a conflict.
    pub fn next(&mut self) -> Result<()> {
        self.tries += 1;
        let is_late = self.request.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late || self.tries > MAX_TRIES {
            return Err(Status::server_timeout(&self.request.kind.resource, self.verb));
        }
        Ok(())
    }

    /// Permits one more generated name after one that is taken.
    pub fn next_name(&mut self, taken: &str) -> Result<()> {
        self.names += 1;
        if self.names > MAX_NAMES {
            return Err(Status::no_name_left(&self.request.kind.resource, taken));
        }
        self.next()
    }
}
