//! Audit events in a file, one JSON object a line.

use crate::audit::{AuditEvent, AuditSink};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A file that audit events are appended to.
pub struct AuditLog(Mutex<File>);

impl AuditLog {
    /// Opens the file for appending; a new one is readable by its owner only.
    pub fn open(path: &Path) -> io::Result<AuditLog> {
        flyball_host::private::append(path).map(Mutex::new).map(AuditLog)
    }
}

impl AuditSink for AuditLog {
    fn record(&self, event: &AuditEvent) {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line) {
            tracing::error!(%error, audit_id = event.audit_id, "write an audit event");
        }
    }
}
