//! Users: the subject of every request, whichever way it is authenticated.

use std::collections::BTreeMap;

/// The group whose members may do everything.
pub const SYSTEM_MASTERS: &str = "system:masters";
/// The group of every user whose identity has been proved.
pub const SYSTEM_AUTHENTICATED: &str = "system:authenticated";
/// The group of requests without credentials.
pub const SYSTEM_UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of the user that requests without credentials have.
pub const SYSTEM_ANONYMOUS: &str = "system:anonymous";

/// The group of all service accounts.
pub const SYSTEM_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// The group of all nodes.
pub const NODES: &str = "system:nodes";

/// A user, with what authorization and audit need to know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name; of a certificate, its common name.
    pub name: String,
    /// Tells users of the same name apart; empty if the authenticator knows none.
    pub uid: String,
    /// The groups; of a certificate, its organizations.
    pub groups: Vec<String>,
    /// Further attributes for authorizers.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of these groups.
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> User {
        User {
            name: name.into(),
            groups: groups.into_iter().map(Into::into).collect(),
            ..User::default()
        }
    }

    /// The user who may do everything.
    pub fn admin() -> User {
        User::new("admin", [SYSTEM_MASTERS])
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> User {
        let groups = User::service_account_groups(namespace);
        User::new(format!("system:serviceaccount:{namespace}:{name}"), groups)
    }

    /// The groups of every service account of a namespace.
    pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
        vec![
            SYSTEM_SERVICE_ACCOUNTS.to_owned(),
            format!("{SYSTEM_SERVICE_ACCOUNTS}:{namespace}"),
        ]
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> User {
        User::new(SYSTEM_ANONYMOUS, [SYSTEM_UNAUTHENTICATED])
    }

    /// Whether the user belongs to a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether the user may do everything.
    pub fn is_master(&self) -> bool {
        self.is_in(SYSTEM_MASTERS)
    }
}
