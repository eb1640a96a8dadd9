//! The answers to `authorizer` in expressions: what this server's own authorizer decides.

use crate::authn::user::User;
use crate::authz::{Access, ResourceAccess, Target};
use crate::server::ApiServer;
use flyball_schema::policy::{AccessCheck, Authorizer, Decision};
use std::fmt;

/// Decides what the user of a request may do, or a service account in its place.
pub(crate) struct RequestAuthorizer {
    pub server: ApiServer,
    pub user: User,
}

impl fmt::Debug for RequestAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAuthorizer").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Authorizer for RequestAuthorizer {
    fn authorize(&self, check: &AccessCheck) -> Decision {
        let account = check
            .service_account
            .as_ref()
            .map(|(namespace, name)| User::service_account(namespace, name));
        let target = match &check.path {
            Some(path) => Target::Path(path),
            None => Target::Resource(ResourceAccess {
                namespace: &check.namespace,
                group: &check.group,
                resource: &check.resource,
                subresource: &check.subresource,
                name: &check.name,
            }),
        };
        let user = account.as_ref().unwrap_or(&self.user);
        let decision = self.server.authorize_loaded(&Access { user, verb: &check.verb, target });
        Decision {
            allowed: decision.allowed,
            reason: decision.reason,
            error: None,
        }
    }
}
