//! Where the API server reaches the webhooks of an operator: a Service in its cluster, or a URL.

use serde_json::{Value, json};

/// The path of conversion reviews, as controller-runtime has it.
pub(crate) const CONVERT: &str = "/convert";

/// The port of the Service.
pub(crate) const SERVICE_PORT: u16 = 443;

/// Where the API server sends reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Service {
        namespace: String,
        name: String,
    },
    /// Without a slash at the end.
    Url(String),
}

impl Endpoint {
    /// The Service of an operator in a namespace.
    pub(crate) fn service(operator: &str, namespace: &str) -> Endpoint {
        Endpoint::Service {
            namespace: namespace.into(),
            name: format!("{operator}-webhook"),
        }
    }

    /// `clientConfig` of a webhook, or of a definition's conversion.
    pub(crate) fn client_config(&self, path: &str, ca_bundle: Option<&Value>) -> Value {
        let mut config = match self {
            Endpoint::Service { namespace, name } => {
                json!({ "service": { "namespace": namespace, "name": name, "path": path, "port": SERVICE_PORT } })
            }
            Endpoint::Url(url) => json!({ "url": format!("{url}{path}") }),
        };
        if let Some(bundle) = ca_bundle {
            config["caBundle"] = bundle.clone();
        }
        config
    }

    /// The names that a certificate has to have.
    pub(crate) fn host_names(&self) -> Vec<String> {
        match self {
            Endpoint::Service { namespace, name } => ["svc", "svc.cluster.local"]
                .iter()
                .map(|suffix| format!("{name}.{namespace}.{suffix}"))
                .collect(),
            Endpoint::Url(url) => {
                let uri: Option<http::Uri> = url.parse().ok();
                let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or("localhost");
                vec![host.trim_matches(['[', ']']).to_owned()]
            }
        }
    }

    /// The namespace that webhooks leave alone unless asked, so that the operator can come back; empty for none.
    pub(crate) fn own_namespace(&self) -> &str {
        match self {
            Endpoint::Service { namespace, .. } => namespace,
            Endpoint::Url(_) => "kube-system",
        }
    }
}
