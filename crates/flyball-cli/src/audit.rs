//! The flags about auditing, as kube-apiserver names them.

use crate::failure::Failure;
use clap::Args;
use flyball_apiserver::ServerOptions;
use flyball_apiserver::audit::{AuditLog, Policy};
use std::{path::PathBuf, sync::Arc};

/// What is recorded of requests, and where.
#[derive(Args)]
pub struct AuditOptions {
    /// Record requests as this audit policy says (audit.k8s.io/v1)
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,
    /// Append audit events to this file, one JSON object a line
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    audit_log_path: Option<PathBuf>,
}

impl AuditOptions {
    /// Sets what an API server records.
    pub fn set(&self, options: &mut ServerOptions) -> Result<(), Failure> {
        let (Some(policy), Some(log)) = (&self.audit_policy_file, &self.audit_log_path) else {
            return Ok(());
        };
        let unreadable = |path: &PathBuf| {
            let path = path.clone();
            move |source| Failure::Audit { path, source }
        };
        let text = std::fs::read_to_string(policy).map_err(unreadable(policy))?;
        options.audit_policy = Policy::read(&text)?;
        options.audit_sink = Some(Arc::new(AuditLog::open(log).map_err(unreadable(log))?));
        Ok(())
    }
}
