//! The options of single controllers: `controllers.NAME.OPTION` in a file, and the same by environment and flag.

use crate::declare::controller::ControllerSpec;
use crate::engine::work::Rate;
use crate::program::config::Config;
use crate::program::config::field::Field;
use crate::program::config::keys::spelled;
use crate::{Error, Operator, Result};
use serde_json::{Map, Value};
use std::time::Duration;

/// What a configuration says about one controller; what it leaves out is as the controller itself declares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerConfig {
    /// How many objects are reconciled at the same time.
    pub concurrency: Option<u32>,
    /// How many reconciles begin in a second.
    pub rate: Option<f64>,
    /// How many reconciles begin at once after a pause, if there is a rate.
    pub burst: Option<u32>,
    /// After how long a reconcile is cancelled.
    pub timeout: Option<Duration>,
    /// How often every object is reconciled even if nothing changes.
    pub resync: Option<Duration>,
    /// How long reconciles may take to end once the operator stops.
    pub shutdown_grace: Option<Duration>,
    /// The delays between retries of an object that fails.
    pub backoff: BackoffConfig,
}

/// The delays between retries; see [`Backoff`](crate::Backoff).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackoffConfig {
    /// The delay after the first failure.
    pub initial: Option<Duration>,
    /// No delay is longer than this.
    pub max: Option<Duration>,
    /// By how much each delay is longer than the one before.
    pub multiplier: Option<f64>,
    /// How many retries in a row there are.
    pub max_retries: Option<u32>,
}

/// One option of a controller.
pub(crate) struct ControllerOption {
    pub(crate) path: &'static str,
    pub(crate) help: &'static str,
    field: for<'a> fn(&'a mut ControllerConfig) -> Field<'a>,
}

const fn option(
    path: &'static str,
    help: &'static str,
    field: for<'a> fn(&'a mut ControllerConfig) -> Field<'a>,
) -> ControllerOption {
    ControllerOption { path, help, field }
}

pub(crate) static OPTIONS: [ControllerOption; 10] = [
    option("concurrency", "objects at the same time", |it| Field::Count(&mut it.concurrency)),
    option("rate", "reconciles a second", |it| Field::Number(&mut it.rate)),
    option("burst", "reconciles at once after a pause", |it| Field::Count(&mut it.burst)),
    option("timeout", "how long a reconcile may take", |it| Field::Time(&mut it.timeout)),
    option("resync", "how often every object is reconciled", |it| Field::Time(&mut it.resync)),
    option("shutdownGrace", "how long reconciles may take to end", |it| {
        Field::GraceTime(&mut it.shutdown_grace)
    }),
    option("backoff.initial", "the delay after the first failure", |it| {
        Field::Time(&mut it.backoff.initial)
    }),
    option("backoff.max", "the longest delay", |it| Field::Time(&mut it.backoff.max)),
    option("backoff.multiplier", "how delays grow, 1 or more", |it| {
        Field::Number(&mut it.backoff.multiplier)
    }),
    option("backoff.maxRetries", "retries in a row, 0 for none", |it| {
        Field::Retries(&mut it.backoff.max_retries)
    }),
];

impl ControllerOption {
    /// The environment variable for a controller: `FLYBALL_CONTROLLERS_GREETING_MAX_RETRIES`.
    fn variable(&self, controller: &str) -> String {
        let name: String = controller.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("{PREFIX}{}{}", name.to_uppercase(), self.suffix())
    }

    fn suffix(&self) -> String {
        format!("_{}", spelled(self.path, '_').to_uppercase())
    }
}

const PREFIX: &str = "FLYBALL_CONTROLLERS_";

/// Reads `controllers` of a file.
pub(super) fn read_section(config: &mut Config, controllers: Map<String, Value>, mistakes: &mut Vec<String>) {
    for (name, options) in controllers {
        match options {
            Value::Null => {}
            Value::Object(options) => {
                for (option, value) in flattened("", options) {
                    if let Err(mistake) = super::layers::text(value).and_then(|text| set(config, &name, &option, &text))
                    {
                        mistakes.push(format!("controllers.{name}.{option}: {mistake}"));
                    }
                }
            }
            _ => mistakes.push(format!("controllers.{name}: has keys of its own, not a value")),
        }
    }
}

/// Values with their paths below a section; an empty one has none.
fn flattened(prefix: &str, fields: Map<String, Value>) -> Vec<(String, Value)> {
    let nested = fields.into_iter().flat_map(|(name, value)| {
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Value::Null => Vec::new(),
            Value::Object(fields) => flattened(&path, fields),
            value => vec![(path, value)],
        }
    });
    nested.collect()
}

/// Reads the flag `--controller NAME.OPTION=VALUE`.
pub(crate) fn read_flag(config: &mut Config, controllers: &[&str], flag: &str) -> Result<(), String> {
    let mistake = || format!("invalid option `{flag}`: expected NAME.OPTION=VALUE, as in greeting.concurrency=4");
    let (path, value) = flag.split_once('=').ok_or_else(mistake)?;
    // The name of a controller may have dots itself.
    let of = |name: &&&str| path.strip_prefix(**name).is_some_and(|rest| rest.starts_with('.'));
    let known = controllers.iter().filter(of).max_by_key(|name| name.len());
    let split = known.and_then(|name| Some((*name, path.strip_prefix(*name)?.strip_prefix('.')?)));
    let (name, option) = split.or_else(|| path.split_once('.')).ok_or_else(mistake)?;
    set(config, name, option, value).map_err(|mistake| format!("controllers.{path}: {mistake}"))
}

/// Reads the environment, of which `variables` are all names.
pub(crate) fn read_environment(
    config: &mut Config,
    controllers: &[&str],
    variables: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut mistakes = Vec::new();
    let known = |name: &&str| OPTIONS.iter().map(|option| option.variable(name)).collect::<Vec<_>>();
    let known: Vec<_> = controllers.iter().flat_map(known).collect();
    for name in variables.iter().filter(|name| name.starts_with(PREFIX) && !known.contains(*name)) {
        // Others may set variables that begin like ours, but none that end like ours, too.
        if OPTIONS.iter().any(|option| name.ends_with(&option.suffix())) {
            mistakes.push(format!("{name}: no such controller; {}", there_are(controllers)));
        }
    }
    for controller in controllers {
        for option in &OPTIONS {
            let name = option.variable(controller);
            let Some(text) = variable(&name).filter(|text| !text.is_empty()) else {
                continue;
            };
            if let Err(mistake) = set(config, controller, option.path, &text) {
                mistakes.push(format!("{name} (controllers.{controller}.{}): {mistake}", option.path));
            }
        }
    }
    mistakes
}

fn set(config: &mut Config, controller: &str, option: &str, text: &str) -> Result<(), String> {
    let Some(known) = OPTIONS.iter().find(|known| known.path == option) else {
        let options: Vec<_> = OPTIONS.iter().map(|option| option.path).collect();
        return Err(format!("no such key; controllers.{controller} has {}", options.join(", ")));
    };
    (known.field)(config.controllers.entry(controller.to_owned()).or_default()).read(text)
}

fn there_are(controllers: &[&str]) -> String {
    match controllers {
        [] => "there are none".into(),
        _ => format!("there are {}", controllers.join(", ")),
    }
}

impl Config {
    /// Refuses options of controllers that the operator does not have, and those that do not go together.
    pub(crate) fn check_controllers(&self, operator: &Operator) -> Result<(), String> {
        let names: Vec<_> = operator.controllers().iter().map(|controller| &*controller.name).collect();
        let mut mistakes = Vec::new();
        for (name, config) in &self.controllers {
            match operator.controllers().iter().find(|controller| controller.name == *name) {
                None => mistakes.push(format!("controllers.{name}: no such controller; {}", there_are(&names))),
                Some(spec) if config.burst.is_some() && config.rate.is_none() && spec.rate.is_none() => {
                    mistakes.push(format!("controllers.{name}.burst: give a rate, too"));
                }
                Some(_) => {}
            }
            let BackoffConfig { initial, max, multiplier, .. } = &config.backoff;
            if multiplier.is_some_and(|multiplier| multiplier < 1.0) {
                mistakes.push(format!("controllers.{name}.backoff.multiplier: must be 1 or more"));
            }
            if initial.zip(*max).is_some_and(|(initial, max)| initial > max) {
                mistakes.push(format!("controllers.{name}.backoff.initial: must not be longer than max"));
            }
        }
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(mistakes.join("\n"))
        }
    }

    /// The operator with the options that this configuration gives it and its controllers.
    pub(crate) fn applied_to(&self, mut operator: Operator) -> Result<Operator> {
        self.check_controllers(&operator).map_err(Error::permanent)?;
        if !self.namespaces.is_empty() {
            operator = operator.namespaces(self.namespaces.iter().cloned());
        }
        if let Some(grace) = self.shutdown.grace {
            operator = operator.shutdown_grace(grace);
        }
        for (name, config) in &self.controllers {
            operator.edit_controller(name, |spec| config.apply(spec));
        }
        Ok(operator)
    }
}

impl ControllerConfig {
    fn apply(&self, spec: &mut ControllerSpec) {
        spec.concurrency = self.concurrency.map_or(spec.concurrency, |objects| objects as usize);
        spec.timeout = self.timeout.unwrap_or(spec.timeout);
        spec.resync = self.resync.or(spec.resync);
        spec.shutdown_grace = self.shutdown_grace.or(spec.shutdown_grace);
        if let Some(every) = self.rate.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok()) {
            spec.rate = Some(Rate { every, burst: spec.rate.map_or(1, |rate| rate.burst) });
        }
        if let (Some(rate), Some(burst)) = (&mut spec.rate, self.burst) {
            rate.burst = burst;
        }
        let (backoff, config) = (&mut spec.backoff, &self.backoff);
        backoff.initial = config.initial.unwrap_or(backoff.initial);
        backoff.max = config.max.unwrap_or(backoff.max);
        backoff.multiplier = config.multiplier.unwrap_or(backoff.multiplier);
        backoff.max_retries = config.max_retries.or(backoff.max_retries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Backoff, Context, Controller};
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use std::sync::Arc;

    fn operator() -> Operator {
        let maps = Controller::new(|_: Arc<ConfigMap>, _: Context| async { Ok(Action::await_change()) });
        let secrets = Controller::new(|_: Arc<Secret>, _: Context| async { Ok(Action::await_change()) });
        Operator::new("greeter").controller(maps).controller(secrets.named("my.secrets"))
    }

    fn refusal(text: &str) -> String {
        let config = Config::from_yaml(text);
        let refused = config
            .map_err(|error| error.to_string())
            .and_then(|config| config.check_controllers(&operator()));
        refused.expect_err("it is refused")
    }

    #[test]
    fn each_option_of_a_controller_is_read_and_the_others_stay() {
        let config = Config::from_yaml(
            "shutdown: { grace: 5s }\ncontrollers:\n  configmap: { concurrency: 3, rate: 0.5, burst: 2, timeout: 1m, resync: 1h, \
             shutdownGrace: 0s, backoff: { initial: 1s, max: 16s, multiplier: 4, maxRetries: 5 } }",
        );
        let operator = config.unwrap().applied_to(operator()).unwrap();
        let [maps, secrets] = operator.controllers() else {
            panic!("there are two")
        };
        assert_eq!((maps.concurrency, maps.timeout, maps.resync), (3, minutes(1), Some(minutes(60))));
        assert_eq!(maps.rate, Some(Rate { every: Duration::from_secs(2), burst: 2 }));
        let backoff = Backoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(16),
            multiplier: 4.0,
            max_retries: Some(5),
        };
        assert_eq!((maps.backoff, maps.shutdown_grace), (backoff, Some(Duration::ZERO)));
        assert_eq!((secrets.concurrency, secrets.rate, secrets.resync), (64, None, None));
        assert_eq!(operator.shutdown_grace, Duration::from_secs(5));
    }

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn a_controller_or_an_option_that_is_not_there_is_refused_by_name() {
        for (text, expected) in [
            (
                "controllers: { configmaps: { concurrency: 1 } }",
                "controllers.configmaps: no such controller; there are configmap, my.secrets",
            ),
            (
                "controllers: { configmap: { backoff: { most: 1s } } }",
                "controllers.configmap.backoff.most: no such key; controllers.configmap has concurrency, rate, burst, timeout, \
                 resync, shutdownGrace, backoff.initial, backoff.max, backoff.multiplier, backoff.maxRetries",
            ),
            ("controllers: { configmap: 3 }", "controllers.configmap: has keys of its own, not a value"),
            ("controllers: 3", "controllers: has keys of its own, not a value"),
            (
                "controllers: { configmap: { concurrency: 0 } }",
                "controllers.configmap.concurrency: invalid count `0`: expected a whole number greater than zero",
            ),
            (
                "controllers: { configmap: { rate: -1 } }",
                "controllers.configmap.rate: invalid number `-1`: expected a number greater than zero",
            ),
            (
                "controllers: { configmap: { resync: 0s } }",
                "controllers.configmap.resync: must be greater than zero",
            ),
            (
                "controllers: { configmap: { burst: 2 } }",
                "controllers.configmap.burst: give a rate, too",
            ),
            (
                "controllers: { configmap: { backoff: { multiplier: 0.5 } } }",
                "controllers.configmap.backoff.multiplier: must be 1 or more",
            ),
            (
                "controllers: { configmap: { backoff: { initial: 2s, max: 1s } } }",
                "controllers.configmap.backoff.initial: must not be longer than max",
            ),
        ] {
            assert_eq!(refusal(text), expected);
        }
    }

    #[test]
    fn the_environment_and_flags_name_controllers_and_options() {
        let (mut config, names) = (Config::default(), ["configmap", "my.secrets"]);
        let environment = [
            ("FLYBALL_CONTROLLERS_CONFIGMAP_BACKOFF_MAX_RETRIES", "3"),
            ("FLYBALL_CONTROLLERS_MY_SECRETS_TIMEOUT", "5s"),
            ("FLYBALL_CONTROLLERS_SECRETS_TIMEOUT", "5s"),
            ("FLYBALL_CONTROLLERS_SERVICE_HOST", "10.0.0.1"),
        ];
        let all: Vec<_> = environment.iter().map(|(name, _)| name.to_string()).collect();
        let variable =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, text)| text.to_string());
        let mistakes = read_environment(&mut config, &names, &all, variable);
        let expected = "FLYBALL_CONTROLLERS_SECRETS_TIMEOUT: no such controller; there are configmap, my.secrets";
        assert_eq!(mistakes, [expected]);
        assert_eq!(config.controllers["configmap"].backoff.max_retries, Some(3));
        assert_eq!(config.controllers["my.secrets"].timeout, Some(Duration::from_secs(5)));
        read_flag(&mut config, &names, "my.secrets.timeout=6s").unwrap();
        assert_eq!(config.controllers["my.secrets"].timeout, Some(Duration::from_secs(6)));
        assert!(
            read_flag(&mut config, &names, "concurrency")
                .unwrap_err()
                .contains("expected NAME.OPTION=VALUE")
        );
        let refusal = read_flag(&mut config, &names, "configmap.speed=1").unwrap_err();
        assert!(refusal.starts_with("controllers.configmap.speed: no such key"), "{refusal}");
    }
}
