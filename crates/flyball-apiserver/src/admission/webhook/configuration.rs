//! The webhooks of all configurations, in the order in which they are called: by the name of their configuration, then by
//! their position in it.
// apiserver/pkg/admission/configuration/mutating_webhook_manager.go

use crate::admission::Attributes;
use crate::admission::matching::{Match, MatchCriteria};
use crate::admission::policy::{RequestAuthorizer, request_resource};
use crate::status::Result;
use crate::store_index::Index;
use crate::webhook::ClientConfig;
use flyball_schema::policy::{Compiler, FailurePolicy, Input, MatchConditions};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const PREFIX: &str = "admissionregistration.k8s.io/";
/// How long a webhook may take that sets no `timeoutSeconds`, which only an invalid configuration does.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// Webhooks in the order in which they are called.
pub(super) type List = Arc<[Arc<Webhook>]>;

/// All webhook configurations.
#[derive(Default)]
pub(crate) struct Configurations {
    mutating: Ordered,
    validating: Ordered,
}

impl Configurations {
    pub(super) fn mutating(&self) -> List {
        self.mutating.list.clone()
    }

    pub(super) fn validating(&self) -> List {
        self.validating.list.clone()
    }
}

/// The configurations of one kind, by name, and their webhooks in order.
#[derive(Default)]
struct Ordered {
    by_name: BTreeMap<String, Vec<Arc<Webhook>>>,
    list: List,
}

impl Ordered {
    fn apply(&mut self, name: &str, value: Option<&[u8]>) -> serde_json::Result<()> {
        self.by_name.remove(name);
        if let Some(value) = value {
            self.by_name.insert(name.to_owned(), webhooks(name, &serde_json::from_slice(value)?));
        }
        self.list = self.by_name.values().flatten().cloned().collect();
        Ok(())
    }
}

impl Index for Configurations {
    const PREFIX: &'static str = PREFIX;

    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) {
        let path = std::str::from_utf8(key).unwrap_or_default();
        let applied = match path.strip_prefix(PREFIX).and_then(|path| path.split_once('/')) {
            Some(("mutatingwebhookconfigurations", name)) => self.mutating.apply(name, value),
            Some(("validatingwebhookconfigurations", name)) => self.validating.apply(name, value),
            _ => Ok(()),
        };
        if let Err(error) = applied {
            tracing::error!(%error, key = path, "decode a stored webhook configuration");
        }
    }
}

fn webhooks(configuration: &str, object: &Value) -> Vec<Arc<Webhook>> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let webhook = |webhook| {
        let name = text(webhook, "name");
        let count = counts.entry(name).or_default();
        let uid = format!("{configuration}/{name}/{count}");
        *count += 1;
        Arc::new(Webhook::read(configuration, uid, webhook))
    };
    webhooks.map(webhook).collect()
}

fn text<'a>(webhook: &'a Value, field: &str) -> &'a str {
    webhook[field].as_str().unwrap_or_default()
}

/// One webhook of a configuration.
pub(super) struct Webhook {
    /// The name, for messages.
    pub name: String,
    /// The name of the configuration.
    pub configuration: String,
    /// Identifies the webhook among all others.
    pub uid: String,
    /// What a failure to call the webhook means.
    failure_policy: FailurePolicy,
    /// How long a call may take.
    pub timeout: Duration,
    /// `sideEffects`; empty if absent.
    pub side_effects: String,
    /// The versions of AdmissionReview that the webhook understands, best first.
    pub review_versions: Vec<String>,
    /// Whether the webhook is called again if others change the object after it (`reinvocationPolicy: IfNeeded`).
    pub is_reinvocable: bool,
    /// The address, or why there is none.
    pub client: Result<ClientConfig, String>,
    criteria: MatchCriteria,
    conditions: Value,
    compiled: OnceLock<(Compiler, MatchConditions)>,
}

impl Webhook {
    fn read(configuration: &str, uid: String, webhook: &Value) -> Webhook {
        let versions = webhook["admissionReviewVersions"].as_array().into_iter().flatten();
        let seconds = webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        Webhook {
            name: text(webhook, "name").to_owned(),
            configuration: configuration.to_owned(),
            uid,
            failure_policy: FailurePolicy::read(&webhook["failurePolicy"]),
            timeout: Duration::from_secs(seconds),
            side_effects: text(webhook, "sideEffects").to_owned(),
            review_versions: versions.filter_map(Value::as_str).map(str::to_owned).collect(),
            is_reinvocable: webhook["reinvocationPolicy"] == "IfNeeded",
            client: ClientConfig::read(&webhook["clientConfig"]),
            criteria: MatchCriteria::of_webhook(webhook),
            conditions: webhook["matchConditions"].clone(),
            compiled: OnceLock::new(),
        }
    }

    /// The resource by which the webhook matches a write; none if it is not to be called.
    // generic/webhook.go, ShouldCallHook
    pub async fn matches(&self, attributes: &Attributes<'_>) -> Result<Option<Match>> {
        let Some(matched) = self.criteria.matches(attributes).await? else {
            return Ok(None);
        };
        if self.conditions.as_array().is_none_or(Vec::is_empty) {
            return Ok(Some(matched));
        }
        let versioned = attributes.versioned(&matched).await?;
        let request = attributes.request;
        // Expressions ask for rights without waiting.
        drop(request.server.rbac().read(request.store()).await?);
        let mut about = attributes.admission_request(&matched);
        about["resource"] = about["requestResource"].clone();
        let input = Input {
            old_object: versioned.old(),
            authorizer: Some(Arc::new(RequestAuthorizer {
                server: request.server.clone(),
                user: request.user.clone(),
            })),
            request_resource: request_resource(attributes),
            ..Input::new(versioned.object(), &about)
        };
        let (compiler, conditions) = self.compiled.get_or_init(|| {
            let compiler = Compiler::new().with_authorizer();
            let conditions = MatchConditions::compile(&compiler, &self.conditions);
            (compiler, conditions)
        });
        match conditions.match_input(compiler, input, self.failure_policy) {
            Ok(true) => Ok(Some(matched)),
            Ok(false) => Ok(None),
            Err(why) => Err(attributes.forbidden(why)),
        }
    }

    /// Whether a failure to call the webhook admits the write.
    pub fn ignores_failures(&self) -> bool {
        self.failure_policy == FailurePolicy::Ignore
    }
}
