//! The FlowSchemas and PriorityLevelConfigurations of the store. The mandatory ones are in force also while they are not
//! stored.

use crate::authn::user::User;
use crate::flow_control::schema::{FlowSchema, FlowSchemaSpec};
use crate::request::info::RequestInfo;
use crate::store_index::Index;
use flyball_schema::builtin::flow_control::{CATCH_ALL, EXEMPT, mandatory_flow, mandatory_level};
use http::HeaderValue;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// FlowSchemas in the order in which they are tried, and the levels.
pub(crate) struct Configuration {
    /// Counts the changes.
    pub generation: u64,
    pub(super) schemas: Vec<FlowSchema>,
    levels: BTreeMap<String, Level>,
}

/// A priority level.
#[derive(Debug)]
pub(super) struct Level {
    pub name: String,
    pub uid: HeaderValue,
    /// None for a level without a limit.
    pub limits: Option<Limited>,
}

/// The limits of a level, as they are configured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Limited {
    pub nominal_concurrency_shares: u32,
    pub lendable_percent: u32,
    pub borrowing_limit_percent: Option<u32>,
    limit_response: LimitResponse,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LimitResponse {
    queuing: Option<Queuing>,
}

/// The queues of a level.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Queuing {
    pub queues: u64,
    pub hand_size: u64,
    pub queue_length_limit: usize,
}

impl Limited {
    /// The queues; none if requests beyond the limit are rejected at once.
    pub fn queuing(&self) -> Option<&Queuing> {
        self.limit_response.queuing.as_ref()
    }
}

impl Default for Configuration {
    fn default() -> Configuration {
        let mut configuration = Configuration { generation: 0, schemas: Vec::new(), levels: BTreeMap::new() };
        for name in [EXEMPT, CATCH_ALL] {
            configuration.restore_schema(name);
            configuration.restore_level(name);
        }
        configuration
    }
}

impl Index for Configuration {
    const PREFIX: &'static str = "flowcontrol.apiserver.k8s.io/";

    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.generation += 1;
        let path = std::str::from_utf8(key).unwrap_or_default();
        let object = value.map(serde_json::from_slice::<Value>).transpose().unwrap_or_else(|error| {
            tracing::error!(%error, key = path, "decode a stored flow schema or priority level");
            None
        });
        match path.strip_prefix(Self::PREFIX).and_then(|rest| rest.split_once('/')) {
            Some(("flowschemas", name)) => match object {
                Some(object) => self.set_schema(name, &object),
                None => {
                    self.schemas.retain(|schema| schema.name != name);
                    self.restore_schema(name);
                }
            },
            Some(("prioritylevelconfigurations", name)) => match object {
                Some(object) => self.set_level(name, &object),
                None => {
                    self.levels.remove(name);
                    self.restore_level(name);
                }
            },
            _ => {}
        }
    }
}

fn uid(object: &Value) -> HeaderValue {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""))
}

impl Configuration {
    fn restore_schema(&mut self, name: &str) {
        if let Some(spec) = mandatory_flow(name) {
            self.set_schema(name, &json!({"spec": spec}));
        }
    }

    fn restore_level(&mut self, name: &str) {
        if let Some(spec) = mandatory_level(name) {
            self.set_level(name, &json!({"spec": spec}));
        }
    }

    fn set_schema(&mut self, name: &str, object: &Value) {
        let Ok(spec) = FlowSchemaSpec::deserialize(&object["spec"]) else {
            tracing::error!(name, "decode the spec of a stored flow schema");
            return;
        };
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let dangling = conditions.filter(|condition| condition["type"] == "Dangling");
        let dangling = dangling
            .filter_map(|condition| condition["status"].as_str())
            .next_back()
            .map(str::to_owned);
        self.schemas.retain(|schema| schema.name != name);
        self.schemas.push(FlowSchema { name: name.to_owned(), uid: uid(object), spec, dangling });
        self.schemas.sort_by(|a, b| {
            let key = |schema: &FlowSchema| schema.spec.matching_precedence;
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
    }

    fn set_level(&mut self, name: &str, object: &Value) {
        let limited = &object["spec"]["limited"];
        let limits = match limited.is_null() {
            true => None,
            false => Some(Limited::deserialize(limited).unwrap_or_else(|error| {
                tracing::error!(%error, name, "decode the limits of a stored priority level");
                Limited::default()
            })),
        };
        let level = Level { name: name.to_owned(), uid: uid(object), limits };
        self.levels.insert(name.to_owned(), level);
    }

    /// The levels, by name.
    pub(super) fn levels(&self) -> impl Iterator<Item = &Level> {
        self.levels.values()
    }

    /// Whether a schema refers to a level that does not exist.
    pub(super) fn is_dangling(&self, schema: &FlowSchema) -> bool {
        !self.levels.contains_key(&schema.spec.priority_level_configuration.name)
    }

    /// The first schema that matches a request and has a level.
    pub(super) fn schema_of(&self, user: &User, info: &RequestInfo) -> &FlowSchema {
        let matching = self.schemas.iter().find(|schema| schema.matches(user, info) && !self.is_dangling(schema));
        let catch_all = || self.schemas.iter().find(|schema| schema.name == CATCH_ALL);
        matching.or_else(catch_all).expect("the schema `catch-all` is always there")
    }

    /// The level of a schema.
    pub(super) fn level_of(&self, schema: &FlowSchema) -> &Level {
        let level = self.levels.get(&schema.spec.priority_level_configuration.name);
        level
            .or_else(|| self.levels.get(CATCH_ALL))
            .expect("the level `catch-all` is always there")
    }
}
