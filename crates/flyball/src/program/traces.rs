//! Where traces are sent: to a collector with the feature `otel`, nowhere without it.

#[cfg(not(feature = "otel"))]
mod absent;
#[cfg(feature = "otel")]
mod otlp;

#[cfg(not(feature = "otel"))]
pub(crate) use absent::Traces;
#[cfg(feature = "otel")]
pub use otlp::Traces;
