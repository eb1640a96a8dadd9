//! Lets a request act as another user, if its sender may do so.
// apiserver/pkg/endpoints/filters/impersonation: constrained_impersonation.go, mode.go

use crate::authn::user::{NODES, SYSTEM_ANONYMOUS, SYSTEM_AUTHENTICATED, SYSTEM_MASTERS, SYSTEM_UNAUTHENTICATED, User};
use crate::authz::{Access, ResourceAccess, Target};
use crate::filters::{Next, Request, Response, context, context_mut, refuse_without_sniffing};
use crate::request::context::RequestContext;
use crate::request::info;
use crate::server::ApiServer;
use crate::status::{Result, Status};
use flyball_schema::{go_text, names};
use http::{HeaderMap, HeaderName};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const EXTRA: &str = "impersonate-extra-";

/// The API group of uids, extra values and, in constrained modes, users and groups.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// In constrained modes, so many values are first asked for at once.
const MANY: usize = 4;
/// The attribute of a service account's token that names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

pub(super) async fn filter(mut request: Request, next: Next) -> Response {
    let wanted = match wanted_user(request.headers()) {
        Ok(None) => return next.run(request).await,
        Ok(Some(wanted)) => wanted,
        Err(status) => return refuse_without_sniffing(&request, &status),
    };
    match impersonate(context(&request), &wanted).await {
        Ok(user) => {
            let sent: Vec<HeaderName> = request.headers().keys().filter(|name| is_ours(name)).cloned().collect();
            for name in sent {
                request.headers_mut().remove(name);
            }
            if let Some(record) = &context(&request).audit {
                record.impersonated(&user);
            }
            context_mut(&mut request).user = user;
            next.run(request).await
        }
        Err(status) => refuse_without_sniffing(&request, &status),
    }
}

fn is_ours(name: &HeaderName) -> bool {
    [USER, UID, GROUP].contains(name) || name.as_str().starts_with(EXTRA)
}

/// The user that the headers name, as they name it; none if they name none.
fn wanted_user(headers: &HeaderMap) -> Result<Option<User>> {
    let text =
        |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let texts = |name: &HeaderName| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let mut user = User {
        name: text(USER),
        uid: text(UID),
        groups: texts(&GROUP),
        ..User::default()
    };
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = info::percent_decode(key).unwrap_or_else(|| key.to_owned());
            user.extra.entry(key).or_default().extend(texts(name));
        }
    }
    match user.name.is_empty() {
        false => Ok(Some(user)),
        true if user == User::default() => Ok(None),
        true => Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go_struct(&user)
        ))),
    }
}

/// A user as Go's `%#v` prints it.
fn go_struct(user: &User) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| go_text::quote(value)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        list(&user.groups)
    };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let members = user.extra.iter();
            let members: Vec<String> =
                members.map(|(key, values)| format!("{}:{}", go_text::quote(key), list(values))).collect();
            format!("map[string][]string{{{}}}", members.join(", "))
        }
    };
    let (name, uid) = (go_text::quote(&user.name), go_text::quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

/// A way in which impersonation is permitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// `impersonate:<name>` on the user, and `impersonate-on:<name>:<verb>` on what the request is about.
    Constrained(&'static str),
    /// `impersonate` on the user, whatever the request is about.
    Legacy,
}

/// The modes that apply to a user, in the order in which they are tried.
fn modes(requestor: &User, wanted: &User) -> Vec<Mode> {
    let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    let node = node_name(&wanted.name);
    let is_account = service_account(&wanted.name).is_some();
    let own_node = requestor.extra.get(NODE_NAME).map(Vec::as_slice).unwrap_or_default();
    let is_own_node =
        service_account(&requestor.name).is_some() && node.is_some_and(|node| matches!(own_node, [own] if own == node));
    let applicable = [
        ("associated-node", only_name && is_own_node),
        ("arbitrary-node", only_name && node.is_some()),
        ("serviceaccount", only_name && is_account),
        ("user-info", node.is_none() && !is_account),
    ];
    let constrained = applicable.into_iter().filter(|(_, applies)| *applies);
    constrained.map(|(name, _)| Mode::Constrained(name)).chain([Mode::Legacy]).collect()
}

/// The user that a request acts as, by the first mode that permits it; else the refusal of the first mode.
async fn impersonate(context: &RequestContext, wanted: &User) -> Result<User> {
    let mut refusal = None;
    for mode in modes(&context.user, wanted) {
        match permitted(context, wanted, mode).await {
            Ok(user) => return Ok(user),
            Err(status) if status.code == 403 => refusal = refusal.or(Some(status)),
            Err(status) => return Err(status),
        }
    }
    Err(refusal.unwrap_or_else(|| Status::internal("no impersonation mode applies")))
}

async fn permitted(context: &RequestContext, wanted: &User, mode: Mode) -> Result<User> {
    let check = Check { server: &context.server, requestor: &context.user, mode };
    if let Mode::Constrained(name) = mode {
        let verb = format!("impersonate-on:{name}:{}", context.info.verb());
        context.server.require_access(&Access::of(&context.user, &context.info, &verb)).await?;
    }
    let mut user = wanted.clone();
    if let Some(groups) = check.user_name(wanted).await? {
        user.groups = groups;
    }
    if !wanted.uid.is_empty() {
        check.may(AUTHENTICATION, "uids", "", &wanted.uid).await?;
    }
    check.groups(&wanted.groups).await?;
    check.extra(wanted).await?;
    let group = match user.name.as_str() {
        SYSTEM_ANONYMOUS => SYSTEM_UNAUTHENTICATED,
        _ if user.is_in(SYSTEM_UNAUTHENTICATED) => return Ok(user),
        _ => SYSTEM_AUTHENTICATED,
    };
    if !user.is_in(group) {
        user.groups.push(group.into());
    }
    Ok(user)
}

/// The checks of one mode.
struct Check<'a> {
    server: &'a ApiServer,
    requestor: &'a User,
    mode: Mode,
}

impl Check<'_> {
    fn access<'a>(&'a self, verb: &'a str, target: ResourceAccess<'a>) -> Access<'a> {
        Access { user: self.requestor, verb, target: Target::Resource(target) }
    }

    fn verb(&self) -> String {
        match self.mode {
            Mode::Constrained(name) => format!("impersonate:{name}"),
            Mode::Legacy => "impersonate".to_owned(),
        }
    }

    /// The API group of users, groups and service accounts.
    fn group(&self) -> &'static str {
        match self.mode {
            Mode::Constrained(_) => AUTHENTICATION,
            Mode::Legacy => "",
        }
    }

    async fn may(&self, group: &str, resource: &str, subresource: &str, name: &str) -> Result<()> {
        let target = ResourceAccess { namespace: "", group, resource, subresource, name };
        self.server.require_access(&self.access(&self.verb(), target)).await
    }

    fn refuse(&self, resource: &str, name: &str, why: &str) -> Status {
        let group = if resource == "groups" {
            self.group()
        } else {
            AUTHENTICATION
        };
        let target = ResourceAccess { group, resource, name, ..ResourceAccess::default() };
        self.access(&self.verb(), target).forbidden(why)
    }

    /// Checks the name of a user; returns the groups that follow from it.
    async fn user_name(&self, wanted: &User) -> Result<Option<Vec<String>>> {
        if let Some((namespace, name)) = service_account(&wanted.name) {
            let target = ResourceAccess {
                namespace,
                group: self.group(),
                resource: "serviceaccounts",
                subresource: "",
                name,
            };
            self.server.require_access(&self.access(&self.verb(), target)).await?;
            return Ok(wanted.groups.is_empty().then(|| User::service_account_groups(namespace)));
        }
        match (self.mode, node_name(&wanted.name)) {
            (Mode::Constrained(mode), Some(node)) => {
                let name = if mode == "associated-node" { "*" } else { node };
                self.may(AUTHENTICATION, "nodes", "", name).await?;
                Ok(Some(vec![NODES.to_owned()]))
            }
            _ => self.may(self.group(), "users", "", &wanted.name).await.map(|()| None),
        }
    }

    async fn groups(&self, groups: &[String]) -> Result<()> {
        if self.mode != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                return Err(self.refuse("groups", "", "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == SYSTEM_MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(self.refuse("groups", SYSTEM_MASTERS, why));
            }
            if groups.len() >= MANY && self.may(self.group(), "groups", "", "*").await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.may(self.group(), "groups", "", group).await?;
        }
        Ok(())
    }

    async fn extra(&self, wanted: &User) -> Result<()> {
        if self.mode != Mode::Legacy {
            if let Some(why) = wanted.extra.iter().find_map(|(key, values)| invalid_extra(key, values)) {
                return Err(self.refuse("userextras", "", &why));
            }
            let values: usize = wanted.extra.values().map(Vec::len).sum();
            if values >= MANY && self.may(AUTHENTICATION, "userextras", "*", "*").await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in &wanted.extra {
            for value in values {
                self.may(AUTHENTICATION, "userextras", key, value).await?;
            }
        }
        Ok(())
    }
}

/// Why an extra attribute is refused in constrained modes.
fn invalid_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".into());
    }
    let segments = key.split_once('/');
    let is_domain_prefixed =
        segments.is_some_and(|(domain, path)| names::dns1123_subdomain(domain).is_empty() && !path.is_empty());
    if !is_domain_prefixed {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        let key = go_text::quote(key);
        return Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key}: {why}"
        ));
    }
    if values.iter().any(String::is_empty) {
        return Some("impersonating the empty string value in extra is not allowed".into());
    }
    None
}

/// The namespace and name of a service account's user name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_valid = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// The name of the node that has a user name.
fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| names::dns1123_subdomain(name).is_empty())
}
