//! Auditing: which requests are recorded, and what of them. The filter `audit` records; a sink takes the events.
// apiserver/pkg/audit, staging/src/k8s.io/apiserver/pkg/apis/audit/v1

mod event;
mod log;
mod policy;
mod record;

pub use event::{AuditEvent, AuditUser, ObjectReference, Stage};
pub use log::AuditLog;
pub use policy::{Level, Policy, PolicyError};
pub(crate) use record::AuditRecord;

/// Takes audit events; called from the tasks that handle requests, so it must not block for long.
pub trait AuditSink: Send + Sync + 'static {
    /// Takes one event.
    fn record(&self, event: &AuditEvent);
}
