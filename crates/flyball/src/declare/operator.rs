//! An operator as a value: its name, its kinds, its controllers and tasks. It is inert until it is started.

#[cfg(feature = "program")]
use crate::Config;
use crate::cache::kind::Kind;
use crate::cache::watch::Lists;
use crate::declare::check::{Check, Checks};
use crate::declare::controller::ControllerSpec;
use crate::declare::task::LeaderTask;
use crate::webhook::endpoint::Endpoint;
use crate::webhook::{
    CelRule, Conversion, Defaulting, Validation,
    admission::AdmissionSpec,
    conversion::{self, ConversionSpec},
    policy::KindRule,
    registration,
};
use crate::{Connection, Controller, Election, Error, EventPolicy, Metrics, Result, Running};
use futures::future::BoxFuture;
use k8s_openapi::{
    api::rbac::v1::PolicyRule,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSONSchemaProps},
};
use kube::{Client, Resource};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc, time::Duration};

/// How long an operator's name may be, so that what is named after it, with a few letters more, has a name that Kubernetes takes.
const MAX_NAME_LENGTH: usize = 50;

/// Default ports of metrics, probes and webhooks.
pub(crate) const METRICS_PORT: u16 = 8080;
pub(crate) const HEALTH_PORT: u16 = 8081;
pub(crate) const WEBHOOK_PORT: u16 = 9443;

/// Default of [`Operator::shutdown_grace`]: as long as Kubernetes gives a pod.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);

/// Everything that runs under one name.
///
/// The name is the field manager of every write, and the operator's name in logs and events.
#[derive(Clone, Debug)]
pub struct Operator {
    name: String,
    crds: Vec<CustomResourceDefinition>,
    controllers: Vec<ControllerSpec>,
    tasks: Vec<Task>,
    pub(crate) leader_tasks: Vec<LeaderTask>,
    pub(crate) shutdown_grace: Duration,
    version: Option<String>,
    namespaces: Vec<String>,
    lists: Lists,
    permissions: Vec<PolicyRule>,
    served: Vec<(String, u16)>,
    metrics: Option<Metrics>,
    events: EventPolicy,
    admissions: Vec<AdmissionSpec>,
    conversions: Vec<ConversionSpec>,
    rules: Vec<KindRule>,
    /// Declarations that cannot be kept.
    mistakes: Vec<String>,
    election: Option<Election>,
    #[cfg(feature = "program")]
    config: Option<Config>,
    checks: Arc<Checks>,
}

/// Work beside the controllers.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) work: Arc<dyn Fn(Client) -> BoxFuture<'static, Result<()>> + Send + Sync>,
}

impl Operator {
    /// An operator that does nothing yet.
    pub fn new(name: impl Into<String>) -> Operator {
        Operator {
            name: name.into(),
            crds: Vec::new(),
            controllers: Vec::new(),
            tasks: Vec::new(),
            leader_tasks: Vec::new(),
            shutdown_grace: SHUTDOWN_GRACE,
            version: None,
            namespaces: Vec::new(),
            lists: Lists::default(),
            permissions: Vec::new(),
            served: Vec::new(),
            metrics: None,
            events: EventPolicy::default(),
            admissions: Vec::new(),
            conversions: Vec::new(),
            rules: Vec::new(),
            mistakes: Vec::new(),
            election: None,
            #[cfg(feature = "program")]
            config: None,
            checks: Arc::default(),
        }
    }

    /// Says which version of the operator this is, as in `env!("CARGO_PKG_VERSION")`.
    ///
    /// The definitions that it installs carry the version (annotation `flyball.dev/operator-version`), and an operator of a lower
    /// version, by semantic versioning, leaves them as they are.
    pub fn version(mut self, version: impl Into<String>) -> Operator {
        self.version = Some(version.into());
        self
    }

    /// Declares a kind that the operator brings along. The replica that leads installs it before anything is reconciled, unless
    /// [`Config::crds`] says otherwise.
    ///
    /// A definition in the cluster is not overwritten if a higher [version](Operator::version) of the operator installed it, or if it
    /// serves or stores a version of the kind that this operator does not bring. The operator then works with the definition as it
    /// is, or refuses to if that serves none of its versions.
    pub fn crd(mut self, crd: CustomResourceDefinition) -> Operator {
        self.crds.push(crd);
        self
    }

    /// Checks objects before they are stored, by a webhook that the operator serves.
    pub fn validates<K>(mut self, validation: Validation<K>) -> Operator {
        self.admissions.push(validation.spec);
        self
    }

    /// Completes objects before they are validated and stored, by a webhook that the operator serves.
    pub fn defaults<K>(mut self, defaulting: Defaulting<K>) -> Operator {
        self.admissions.push(defaulting.spec);
        self
    }

    /// Declares a kind in several versions, which the operator brings along as by [`Operator::crd`] and converts by a webhook.
    pub fn converts<K>(mut self, conversion: Conversion<K>) -> Operator {
        self.mistakes.extend(conversion.spec.mistakes.clone());
        match conversion.spec.crd() {
            Ok(crd) => self.crds.push(crd),
            Err(mistake) => self.mistakes.push(mistake),
        }
        self.conversions.push(conversion.spec);
        self
    }

    /// Has the API server check objects of a kind by a rule in CEL, without a webhook.
    pub fn rule<K>(mut self, rule: CelRule) -> Operator
    where
        K: Resource<DynamicType = (), Scope: 'static>,
    {
        self.rules.push(KindRule { kind: Kind::of::<K>(), rule });
        self
    }

    /// Confines the operator to these namespaces: of kinds that live in namespaces nothing else is watched, cached or
    /// reconciled. All namespaces unless set.
    ///
    /// A kind that is known at run time only ([`Controller::of`]) needs [`Controller::namespaced`] or
    /// [`Controller::cluster_wide`], and is refused without.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Operator {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self.namespaces.sort();
        self.namespaces.dedup();
        self
    }

    /// Lists each kind as the beginning of its watch (KEP-3157) where the API server can do that.
    ///
    /// Pages, which are the default, are decoded while they arrive. Streaming is meant to cost the API server less memory
    /// where a kind has very many objects.
    pub fn streaming_lists(mut self) -> Operator {
        self.lists = Lists::Streamed;
        self
    }

    /// Watches without end, as is right where the API server is in the same process.
    #[doc(hidden)]
    pub fn in_process(mut self) -> Operator {
        self.lists = Lists::InProcess;
        self
    }

    /// Adds a controller.
    pub fn controller<K>(mut self, controller: Controller<K>) -> Operator {
        self.controllers.push(controller.spec);
        self
    }

    /// Runs `work` beside the controllers on every replica, a server for example, until it succeeds or the operator stops.
    /// [`Operator::leader_task`] runs on one replica only.
    ///
    /// If it fails or panics, that is logged, and it is begun anew after a delay that grows.
    pub fn task<Fut>(
        mut self,
        name: impl Into<String>,
        work: impl Fn(Client) -> Fut + Send + Sync + 'static,
    ) -> Operator
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let work = Arc::new(move |client| -> BoxFuture<'static, Result<()>> { Box::pin(work(client)) });
        self.tasks.push(Task { name: name.into(), work });
        self
    }

    /// Gives reconciles, timers, daemons and leader tasks this long to end when the operator stops; 30 seconds unless set.
    pub fn shutdown_grace(mut self, time: Duration) -> Operator {
        self.shutdown_grace = time;
        self
    }

    /// Declares a right that the operator needs beyond what its controllers declare; `rbac` and `manifests` grant it.
    ///
    /// It holds wherever the operator watches. For verbs on a kind, [`Controller::needs`] is shorter.
    pub fn permission(mut self, rule: PolicyRule) -> Operator {
        self.permissions.push(rule);
        self
    }

    /// Declares a port that a task of the operator listens on; `manifests` names it, and lets others reach it.
    pub fn serves(mut self, name: impl Into<String>, port: u16) -> Operator {
        self.served.push((name.into(), port));
        self
    }

    /// Counts and measures in `metrics`, where the author may have added some of their own, and not in new ones per start.
    pub fn metrics(mut self, metrics: &Metrics) -> Operator {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Says how events are published and remembered.
    pub fn events(mut self, policy: EventPolicy) -> Operator {
        self.events = policy;
        self
    }

    /// Works only while it leads this election, whatever the configuration says. See also [`Controller::election`].
    pub fn election(mut self, election: Election) -> Operator {
        self.election = Some(election);
        self
    }

    /// Starts as `config` says: its namespaces, election, ports and options of controllers. [`run`](crate::run) reads the
    /// configuration from flags, environment and file.
    #[cfg(feature = "program")]
    pub fn config(mut self, config: &Config) -> Operator {
        self.config = Some(config.clone());
        self
    }

    /// The configuration that the operator starts with, if it was given one.
    #[cfg(feature = "program")]
    pub fn configuration(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Has `/readyz` ask one question more, for example whether a server of the author's listens.
    pub fn ready_check(
        mut self,
        name: impl Into<String>,
        ask: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Operator {
        Arc::make_mut(&mut self.checks)
            .ready
            .push(Check { name: name.into(), ask: Arc::new(ask) });
        self
    }

    /// Has `/livez` ask one question more; a process that fails it is restarted.
    pub fn live_check(
        mut self,
        name: impl Into<String>,
        ask: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Operator {
        Arc::make_mut(&mut self.checks).live.push(Check { name: name.into(), ask: Arc::new(ask) });
        self
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kinds that the operator brings along.
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        &self.crds
    }

    /// Converts an object to another version of its kind, as the webhook of [`Operator::converts`] does. The version is
    /// written with its group, as in `example.dev/v2`.
    pub fn convert(&self, object: &Value, api_version: &str) -> Result<Value> {
        conversion::review::convert(&self.conversions, object, api_version)
    }

    /// Starts the operator: installs its kinds, stands for election, runs its controllers and tasks.
    ///
    /// `cluster` is a `kube::Client` or a `kube::Config`. Without [`Operator::config`] it opens no port, and no Lease is needed
    /// to work unless [`Operator::election`] declares one. The same operator may be started any number of times: after a stop, or
    /// on several clusters.
    ///
    /// A leader's write that is begun after its lease has ended is not sent, and one in flight at that time is abandoned. Where
    /// `cluster` is a `kube::Config`, as in [`run`](crate::run), its connection is closed as well.
    pub async fn start(&self, cluster: impl Into<Connection>) -> Result<Running> {
        Running::start(self, cluster.into()).await
    }

    /// The namespaces that the operator is confined to; none for all.
    pub(crate) fn namespaces_watched(&self) -> &[String] {
        &self.namespaces
    }

    pub(crate) fn lists(&self) -> Lists {
        self.lists
    }

    pub(crate) fn controllers(&self) -> &[ControllerSpec] {
        &self.controllers
    }

    /// Changes the controller of that name, if there is one.
    #[cfg(feature = "program")]
    pub(crate) fn edit_controller(&mut self, name: &str, edit: impl Fn(&mut ControllerSpec)) {
        self.controllers.iter_mut().filter(|controller| controller.name == name).for_each(edit);
    }

    pub(crate) fn own_version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    pub(crate) fn event_policy(&self) -> EventPolicy {
        self.events
    }

    pub(crate) fn own_election(&self) -> Option<&Election> {
        self.election.as_ref()
    }

    pub(crate) fn checks(&self) -> &Arc<Checks> {
        &self.checks
    }

    pub(crate) fn own_metrics(&self) -> Metrics {
        self.metrics.clone().unwrap_or_default()
    }

    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    pub(crate) fn permissions(&self) -> &[PolicyRule] {
        &self.permissions
    }

    pub(crate) fn admissions(&self) -> &[AdmissionSpec] {
        &self.admissions
    }

    pub(crate) fn conversions(&self) -> &[ConversionSpec] {
        &self.conversions
    }

    pub(crate) fn rules(&self) -> &[KindRule] {
        &self.rules
    }

    /// Where the API server reaches the webhooks of the operator, which runs in a namespace.
    pub(crate) fn webhook_endpoint(&self, namespace: &str) -> Endpoint {
        #[cfg(feature = "program")]
        if let Some(endpoint) = self.config.as_ref().and_then(|config| config.webhook.endpoint()) {
            return endpoint;
        }
        Endpoint::service(&self.name, namespace)
    }

    pub(crate) fn served(&self) -> &[(String, u16)] {
        &self.served
    }

    /// Refuses declarations that cannot work, all in one message.
    pub(crate) fn check(&self) -> Result<()> {
        let mut mistakes: Vec<_> = self.controllers.iter().flat_map(ControllerSpec::mistakes).collect();
        if !is_label(&self.name)
            || self.name.len() > MAX_NAME_LENGTH
            || self.name.starts_with(|c: char| c.is_ascii_digit())
        {
            mistakes.push(format!(
                "the name must be at most {MAX_NAME_LENGTH} lower-case letters, digits and dashes, of which the first is a letter: its \
                 Service and its namespace are named after it"
            ));
        }
        if !self.namespaces.is_empty() {
            mistakes.extend(self.controllers.iter().filter_map(ControllerSpec::scope_error));
        }
        mistakes.extend(self.controller_mistakes());
        mistakes.extend(self.mistakes.clone());
        mistakes.extend(registration::mistakes(self));
        let taken = |port: u16| [METRICS_PORT, HEALTH_PORT, WEBHOOK_PORT].contains(&port);
        for (name, port) in &self.served {
            if taken(*port)
                || matches!(name.as_str(), "metrics" | "health" | "webhook")
                || !is_label(name)
                || name.len() > 15
            {
                mistakes.push(format!(
                    "port {name} ({port}): its name must be at most 15 lower-case letters, digits and dashes, and \
                     none of metrics, health and webhook, whose ports it must leave free"
                ));
            }
        }
        if mistakes.is_empty() {
            return Ok(());
        }
        Err(Error::permanent(format!("operator {:?}: {}", self.name, mistakes.join("; "))))
    }

    /// Declaration errors of controllers among each other and against the operator's kinds.
    fn controller_mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let indexes: Vec<_> = self.controllers.iter().flat_map(|controller| &controller.indexes).collect();
        for (count, index) in indexes.iter().enumerate() {
            if indexes[..count].iter().any(|other| other.is_taken_by(index)) {
                mistakes.push(format!("two indexes of {} are called {:?}", index.kind.name(), index.name));
            }
        }
        let mut cleaned = HashSet::new();
        for controller in self.controllers.iter().filter(|controller| !controller.cleanup.is_empty()) {
            if !cleaned.insert(controller.kind.group_resource()) {
                let kind = controller.kind.name();
                mistakes.push(format!("two controllers clean up {kind}: one finalizer cannot wait for both"));
            }
        }
        for controller in &self.controllers {
            if controller.cleanup_deadline.is_some() && controller.cleanup.is_empty() {
                mistakes.push(format!("{} has a deadline for its cleanup, and no cleanup", controller.kind.name()));
            }
        }
        for controller in self.controllers.iter().filter(|controller| controller.ready_condition) {
            let (group, name) = (&controller.kind.resource.group, controller.kind.name());
            let defines = |crd: &&CustomResourceDefinition| crd.spec.group == *group && crd.spec.names.kind == name;
            if self.crds.iter().find(defines).is_some_and(|crd| !has_conditions(crd)) {
                mistakes.push(format!(
                    "the status of {name} has no list `conditions`, which `.ready_condition()` writes"
                ));
            }
        }
        let mut names = HashSet::new();
        for controller in self.controllers.iter().filter(|controller| !names.insert(&controller.name)) {
            mistakes.push(format!("two controllers are called {:?}: name one with `.named(…)`", controller.name));
        }
        mistakes
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Task {}", self.name)
    }
}

/// Whether every version of a kind keeps a list of conditions in its status.
fn has_conditions(crd: &CustomResourceDefinition) -> bool {
    let keeps = |schema: &JSONSchemaProps| schema.x_kubernetes_preserve_unknown_fields == Some(true);
    let property = |schema: &JSONSchemaProps, name: &str| schema.properties.as_ref()?.get(name).cloned();
    crd.spec.versions.iter().all(|version| {
        let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
            return true;
        };
        let Some(status) = property(schema, "status") else {
            return keeps(schema);
        };
        keeps(&status) || property(&status, "conditions").is_some()
    })
}

/// Whether a name can be part of a finalizer, a Lease and a field manager (RFC 1123, "label").
pub(crate) fn is_label(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;
    use crate::Context;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    async fn reconcile(_: Arc<ConfigMap>, _: Context) -> Result {
        Ok(Action::await_change())
    }

    async fn cleanup(_: Arc<ConfigMap>, _: Context) -> Result<()> {
        Ok(())
    }

    fn refusal(operator: Operator) -> String {
        operator.check().map_or_else(|error| error.to_string(), |()| "none".into())
    }

    #[test]
    fn an_operator_is_a_value_that_can_be_read() {
        let operator =
            Operator::new("greeter").controller(Controller::new(reconcile).owns::<Secret>().cleanup(cleanup));
        assert_eq!((operator.name(), operator.crds().len()), ("greeter", 0));
        assert_eq!(refusal(operator), "none");
    }

    #[test]
    fn a_name_that_kubernetes_would_refuse_is_refused() {
        for name in ["", "Greeter", "-a", "a.b", "9lives", &"a".repeat(51)] {
            assert!(refusal(Operator::new(name)).contains("the name must be"), "{name}");
        }
    }

    #[test]
    fn a_port_that_the_framework_uses_is_refused() {
        for (name, port) in [
            ("metrics", 3000),
            ("http", 8081),
            ("Http", 3000),
            ("a-name-of-sixteen", 3000),
        ] {
            assert!(
                refusal(Operator::new("a").serves(name, port)).contains("whose ports it must leave free"),
                "{name}"
            );
        }
        assert_eq!(refusal(Operator::new("a").serves("http", 3000)), "none");
    }

    #[test]
    fn two_cleanups_of_one_kind_are_refused() {
        let controller = Controller::new(reconcile).cleanup(cleanup);
        let refusal = refusal(Operator::new("a").controller(controller.clone()).controller(controller));
        assert!(refusal.contains("two controllers clean up ConfigMap"), "{refusal}");
    }
}
