//! In place of `otlp` where the feature `otel` is off: the configuration has refused to be told where traces go.

use crate::Result;
use crate::program::config::Tracing;
use tracing_subscriber::layer::Identity;

/// Nowhere to send traces to; there is none.
pub(crate) enum Traces {}

impl Traces {
    pub(crate) fn start(_: &Tracing, _: &str) -> Result<Option<Traces>> {
        Ok(None)
    }

    pub(crate) fn layer(&self) -> Identity {
        match *self {}
    }

    pub(crate) async fn end(self) {
        match self {}
    }
}
