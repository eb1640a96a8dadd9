//! What a request asks for, as its method, path and query say. Whether such a kind is served is left to routing.
// apiserver/pkg/endpoints/request/requestinfo.go

use http::Method;
use std::borrow::Cow;

/// What the method, the path and the query of a request ask for.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    /// The HTTP method.
    pub method: Method,
    /// The path, percent-decoded.
    pub path: String,
    /// The parameters of the query.
    pub query: Query,
    /// The resource and the verb; none where the path names no resource (`/version`, `/apis/apps/v1`).
    pub resource: Option<ResourceInfo>,
}

/// The verb, and the resource that the path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The verb.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The namespace, if the path names one; of a Namespace, its own name.
    pub namespace: Option<String>,
    /// Whether the resource follows `/namespaces/{namespace}` in the path.
    pub in_namespace: bool,
    /// The plural name of the resource.
    pub resource: String,
    /// The name of one object.
    pub name: Option<String>,
    /// The subresource of that object.
    pub subresource: Option<String>,
    /// What follows the subresource in the path.
    pub rest: Vec<String>,
}

/// A verb of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the verb of its name")]
pub enum Verb {
    Create,
    Get,
    List,
    Watch,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// The path prefix `/proxy/`; no endpoint has it.
    Proxy,
    /// A method without a verb.
    None,
}

impl Verb {
    /// The verb, as roles and audit events name it.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Proxy => "proxy",
            Verb::None => "",
        }
    }

    /// Whether the verb changes nothing and has no body.
    pub fn is_read_only(self) -> bool {
        matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

impl RequestInfo {
    /// Reads a request's method and URI.
    pub fn read(method: &Method, uri: &http::Uri) -> RequestInfo {
        let query = Query::parse(uri.query().unwrap_or_default());
        let path = decode(uri.path(), Plus::Itself);
        let resource = resource(method, &path, &query);
        RequestInfo { method: method.clone(), path, query, resource }
    }

    /// The verb of a resource; of other paths, the method in lower case.
    pub fn verb(&self) -> Cow<'static, str> {
        match &self.resource {
            Some(target) => Cow::Borrowed(target.verb.name()),
            None => Cow::Owned(self.method.as_str().to_ascii_lowercase()),
        }
    }

    /// Whether the request changes nothing.
    pub fn is_read_only(&self) -> bool {
        match &self.resource {
            Some(target) => target.verb.is_read_only(),
            None => self.method == Method::GET,
        }
    }

    /// Whether the request lasts as long as its client wants: it has no deadline, and is not counted as in flight.
    // pkg/controlplane/apiserver/config.go, LongRunningFunc
    pub fn is_long_running(&self) -> bool {
        let Some(target) = &self.resource else {
            return false;
        };
        matches!(target.verb, Verb::Watch | Verb::Proxy)
            || matches!(target.subresource.as_deref(), Some("attach" | "exec" | "proxy" | "log" | "portforward"))
    }
}

fn resource(method: &Method, path: &str, query: &Query) -> Option<ResourceInfo> {
    let path = path.strip_prefix('/')?.trim_end_matches('/');
    let mut parts = path.split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next().filter(|group| !group.is_empty())?,
        _ => return None,
    };
    let version = parts.next()?;
    let mut parts: Vec<&str> = parts.collect();
    let mut verb = match *parts.first()? {
        "watch" if parts.len() > 1 => Verb::Watch,
        "proxy" if parts.len() > 1 => Verb::Proxy,
        _ => verb_of(method),
    };
    if matches!(parts[0], "watch" | "proxy") && parts.len() > 1 {
        parts.remove(0);
    }
    let (mut namespace, mut in_namespace) = (None, false);
    if parts[0] == "namespaces" && parts.len() > 1 {
        namespace = Some(parts[1].to_owned());
        in_namespace = parts.len() > 2 && !matches!(parts[2], "status" | "finalize");
        if in_namespace {
            parts.drain(..2);
        }
    }
    let name = parts.get(1).map(|name| (*name).to_owned());
    verb = match verb {
        Verb::Get if name.is_none() && query.flag("watch") => Verb::Watch,
        Verb::Get if name.is_none() => Verb::List,
        Verb::Delete if name.is_none() => Verb::DeleteCollection,
        verb => verb,
    };
    Some(ResourceInfo {
        verb,
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        in_namespace,
        resource: parts[0].to_owned(),
        name,
        subresource: parts.get(2).map(|name| (*name).to_owned()),
        rest: parts.iter().skip(3).map(|part| (*part).to_owned()).collect(),
    })
}

fn verb_of(method: &Method) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::GET | Method::HEAD => Verb::Get,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::None,
    }
}

/// The parameters of a query, in order, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows `?` in a URI.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key, Plus::Space), decode(value, Plus::Space))
                })
                .collect(),
        )
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub fn get(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(name, _)| name == key)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The names of the parameters, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// A boolean as `conversion.Convert_Slice_string_To_bool` reads it: absent, `false` and `0` are no, all else is yes.
    pub fn flag(&self, key: &str) -> bool {
        self.all(key)
            .next()
            .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Plus {
    Space,
    Itself,
}

/// Decodes percent-encoded bytes; none if an escape is malformed.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let is_hex = |escape: &str| escape.get(..2).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_valid = text.split('%').skip(1).all(is_hex);
    is_valid.then(|| decode(text, Plus::Itself))
}

fn decode(text: &str, plus: Plus) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], escaped) {
            (b'+', _) if plus == Plus::Space => decoded.push(b' '),
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, uri: &str) -> Option<ResourceInfo> {
        RequestInfo::read(&method.parse().unwrap(), &uri.parse().unwrap()).resource
    }

    fn words(target: &ResourceInfo) -> String {
        let optional = |part: &Option<String>| part.clone().unwrap_or("-".into());
        let ResourceInfo { verb, group, version, resource, .. } = target;
        let rest = [&target.namespace, &target.name, &target.subresource].map(optional).join(" ");
        format!("{verb:?} {group}/{version} {resource} {rest}")
    }

    #[test]
    fn paths_are_read_as_kubernetes_reads_them() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/pods", "List /v1 pods - - -"),
            ("GET", "/api/v1/pods?watch=true", "Watch /v1 pods - - -"),
            ("GET", "/api/v1/pods?watch=0", "List /v1 pods - - -"),
            ("GET", "/api/v1/pods?watch=", "Watch /v1 pods - - -"),
            ("HEAD", "/api/v1/namespaces/a/pods/b", "Get /v1 pods a b -"),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "Get /v1 pods a b log"),
            ("GET", "/api/v1/namespaces", "List /v1 namespaces - - -"),
            ("GET", "/api/v1/namespaces/a", "Get /v1 namespaces a a -"),
            ("PUT", "/api/v1/namespaces/a/finalize", "Update /v1 namespaces a a finalize"),
            ("PUT", "/api/v1/namespaces/a/status", "Update /v1 namespaces a a status"),
            ("POST", "/apis/apps/v1/namespaces/a/deployments/", "Create apps/v1 deployments a - -"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "Patch apps/v1 deployments a d scale",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "DeleteCollection apps/v1 deployments a - -",
            ),
            ("DELETE", "/apis/apps/v1/namespaces/a/deployments/d", "Delete apps/v1 deployments a d -"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "Watch /v1 pods a b -"),
            ("GET", "/api/v1/watch/pods", "Watch /v1 pods - - -"),
            ("OPTIONS", "/api/v1/pods", "None /v1 pods - - -"),
        ] {
            let target = read(method, uri).unwrap_or_else(|| panic!("{uri} names no resource"));
            assert_eq!(words(&target), expected, "{method} {uri}");
        }
    }

    #[test]
    fn other_paths_name_no_resource() {
        for uri in [
            "/",
            "/version",
            "/api",
            "/api/v1",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/apis/apps/v1/",
            "/apis//v1/pods",
            "//api/v1/pods",
        ] {
            assert_eq!(read("GET", uri), None, "{uri}");
        }
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&x=1+2&x=3&empty=");

        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert_eq!(query.all("x").collect::<Vec<_>>(), ["1 2", "3"]);
        assert_eq!(query.get("empty"), None);
        assert!(query.flag("empty"));
    }
}
