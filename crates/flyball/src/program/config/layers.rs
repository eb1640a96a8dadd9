//! Puts a configuration together: each layer says some keys, and is heard over those before it.

use crate::program::config::field::show;
use crate::program::config::{Config, ConfigError, KEYS, Key, controllers};
use serde_json::{Map, Value};

/// A configuration in the making, and what was wrong with it so far.
#[derive(Default)]
pub(crate) struct Layers {
    config: Config,
    /// The name of the author's section, and what the file says there.
    section: Option<String>,
    section_value: Option<Value>,
    mistakes: Vec<String>,
}

/// What may stand above the keys of a file, and nothing else.
const WRAPPER: [(&str, &str); 2] = [("apiVersion", "flyball.dev/v1"), ("kind", "OperatorConfig")];

impl Layers {
    /// Nothing said yet; the file may have a section of the author's.
    pub(crate) fn with_section(section: Option<&str>) -> Layers {
        Layers { section: section.map(str::to_owned), ..Layers::default() }
    }

    /// Adds a YAML file; `name` is put before its mistakes.
    pub(crate) fn yaml(&mut self, name: &str, text: &str) {
        let place = |mistake: String| {
            if name.is_empty() {
                mistake
            } else {
                format!("{name}: {mistake}")
            }
        };
        let root: Value = match serde_saphyr::from_str::<Option<Value>>(text) {
            Ok(root) => root.unwrap_or(Value::Null),
            Err(error) => return self.mistakes.push(place(format!("no YAML: {}", where_and_why(&error.to_string())))),
        };
        let mut mistakes = Vec::new();
        match root {
            Value::Null => {}
            Value::Object(fields) => self.section("", fields, &mut mistakes),
            _ => mistakes.push("an OperatorConfig is a mapping of keys".into()),
        }
        self.mistakes.extend(mistakes.into_iter().map(place));
    }

    /// Adds a flag or a variable, called `name`.
    pub(crate) fn set(&mut self, name: &str, key: &Key, text: &str) {
        if let Err(mistake) = key.set(&mut self.config, text) {
            self.mistakes.push(format!("{name} ({}): {mistake}", key.path));
        }
    }

    /// Adds a mistake that belongs to no key.
    pub(crate) fn mistake(&mut self, mistake: String) {
        self.mistakes.push(mistake);
    }

    /// The configuration, unless something was wrong.
    /// It comes with what the file says in the author's section.
    pub(crate) fn finish(mut self) -> Result<(Config, Option<Value>), ConfigError> {
        if self.mistakes.is_empty() {
            self.mistakes = contradictions(&self.config);
        }
        if self.mistakes.is_empty() {
            Ok((self.config, self.section_value))
        } else {
            Err(ConfigError { mistakes: self.mistakes })
        }
    }

    /// Adds the keys under `prefix`.
    fn section(&mut self, prefix: &str, fields: Map<String, Value>, mistakes: &mut Vec<String>) {
        if prefix.is_empty() && is_given(&fields, "namespace") && is_given(&fields, "namespaces") {
            mistakes.push("namespaces: `namespace` is given too; give one of them".into());
        }
        for (name, value) in fields {
            let path = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}.{name}")
            };
            if let Err(mistake) = self.field(&path, value, mistakes) {
                mistakes.push(format!("{path}: {mistake}"));
            }
        }
    }

    fn field(&mut self, path: &str, value: Value, mistakes: &mut Vec<String>) -> Result<(), String> {
        if self.section.as_deref() == Some(path) {
            self.section_value = Some(value);
            return Ok(());
        }
        let is_section = is_section(path);
        let key = KEYS.iter().find(|key| key.path == path);
        match (value, key) {
            (Value::Null, _) if is_section || key.is_some() => Ok(()),
            (Value::Object(_), Some(_)) => Err("takes a value, not keys of its own".into()),
            (Value::Object(fields), None) if path == "controllers" => {
                controllers::read_section(&mut self.config, fields, mistakes);
                Ok(())
            }
            (Value::Object(fields), None) if is_section => {
                self.section(path, fields, mistakes);
                Ok(())
            }
            (_, None) if is_section => Err("has keys of its own, not a value".into()),
            (value, Some(key)) => key.set(&mut self.config, &text(value)?),
            (value, None) => unlisted(path, &value, self.section.as_deref()),
        }
    }
}

/// What a reader of YAML says, without a picture of it and without advice to programmers.
fn where_and_why(error: &str) -> &str {
    let line = error.lines().next().unwrap_or(error);
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let advice = [", set DuplicateKeyPolicy", "; use from_"]
        .iter()
        .filter_map(|advice| line.find(advice))
        .min();
    &line[..advice.unwrap_or(line.len())]
}

/// What is not in the table: the wrapper, and mistakes.
fn unlisted(path: &str, value: &Value, own: Option<&str>) -> Result<(), String> {
    if let Some((_, expected)) = WRAPPER.iter().find(|(name, _)| *name == path) {
        let given = value.as_str().unwrap_or_default();
        return if given == *expected {
            Ok(())
        } else {
            Err(format!("`{given}` is no {expected}"))
        };
    }
    Err(format!("no such key; {}", neighbours(path, own)))
}

/// The known keys beside one that is not known.
fn neighbours(path: &str, own: Option<&str>) -> String {
    let section = path.rsplit_once('.').map_or("", |(section, _)| section);
    let mut names: Vec<&str> = Vec::new();
    for key in &KEYS {
        let rest = if section.is_empty() {
            Some(key.path)
        } else {
            inside(key.path, section)
        };
        let name = rest.and_then(|rest| rest.split('.').next());
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    if section.is_empty() {
        names.extend(["controllers"].into_iter().chain(own));
    }
    let names = names.join(", ");
    if section.is_empty() {
        format!("there are {names}")
    } else {
        format!("{section} has {names}")
    }
}

fn is_given(fields: &Map<String, Value>, name: &str) -> bool {
    fields.get(name).is_some_and(|value| !value.is_null())
}

/// Whether the framework has keys below this one.
pub(crate) fn is_section(path: &str) -> bool {
    path == "controllers" || KEYS.iter().any(|key| is_under(key.path, path))
}

fn is_under(path: &str, section: &str) -> bool {
    inside(path, section).is_some()
}

fn inside<'a>(path: &'a str, section: &str) -> Option<&'a str> {
    path.strip_prefix(section)?.strip_prefix('.')
}

/// A value of the file as a flag would say it.
pub(super) fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.into_iter().map(text).collect();
            Ok(items?.join(","))
        }
        Value::Object(_) | Value::Null => Err("takes values, not keys".into()),
        value => Ok(value.to_string()),
    }
}

/// Keys that are right alone and wrong together (client-go, leaderelection.go, `NewLeaderElector`).
fn contradictions(config: &Config) -> Vec<String> {
    let election = &config.leader_election;
    let times = [
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ];
    let mut mistakes = Vec::new();
    for (name, time) in times {
        if time.is_zero() {
            mistakes.push(format!("leaderElection.{name}: must be greater than zero"));
        }
    }
    for pair in times.windows(2) {
        let ((longer_name, longer), (name, time)) = (pair[0], pair[1]);
        if time >= longer {
            mistakes.push(format!("leaderElection.{name}: must be shorter than {longer_name}, {}", show(longer)));
        }
    }
    mistakes.extend(paths_taken(config));
    match (&config.metrics.cert_file, &config.metrics.key_file) {
        (Some(_), None) => mistakes.push("metrics.keyFile: missing beside metrics.certFile; give both, or none".into()),
        (None, Some(_)) => mistakes.push("metrics.certFile: missing beside metrics.keyFile; give both, or none".into()),
        _ => {}
    }
    if config.tracing.service_name.is_some() && config.tracing.endpoint.is_none() {
        mistakes.push("tracing.serviceName: no traces are sent without tracing.endpoint; give both, or none".into());
    }
    mistakes
}

/// Paths that lead to two answers.
fn paths_taken(config: &Config) -> Vec<String> {
    let (metrics, health) = (&*config.metrics.path, &config.health);
    let (live, ready) = (&*health.liveness_path, &*health.readiness_path);
    let debug_paths = ["/leader", "/debug"];
    let taken = |key: &str, path: &str, others: &[&str]| {
        let under = |path: &str, other: &str| path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        let clash = others.iter().find(|other| path == **other || under(path, other) || under(other, path))?;
        Some(format!("{key}: `{path}` is taken by `{clash}`, which answers something else"))
    };
    let mistakes = [
        taken("health.livenessPath", live, &[&debug_paths[..], &["/readyz"]].concat()),
        taken("health.readinessPath", ready, &[&debug_paths[..], &["/livez", "/healthz", live]].concat()),
        taken(
            "metrics.path",
            metrics,
            &[&debug_paths[..], &["/livez", "/healthz", "/readyz", live, ready]].concat(),
        ),
    ];
    mistakes.into_iter().flatten().take(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_layer_is_heard() {
        let key = |path| KEYS.iter().find(|key| key.path == path).unwrap();
        let mut layers = Layers::default();
        layers.yaml("a.yaml", "metrics: { port: 1, path: /m }\nnamespaces: [a, b]");
        layers.set("FLYBALL_METRICS_PORT", key("metrics.port"), "2");
        layers.set("FLYBALL_NAMESPACE", key("namespace"), "c");
        layers.set("--metrics-port", key("metrics.port"), "3");
        let (config, _) = layers.finish().unwrap();
        assert_eq!((config.metrics.port, config.metrics.path.as_str()), (3, "/m"));
        assert_eq!(config.namespaces, ["c"]);
    }

    #[test]
    fn paths_that_lead_to_two_answers_are_refused() {
        for (text, expected) in [
            (
                "health: { readinessPath: /healthz }",
                "health.readinessPath: `/healthz` is taken by `/healthz`, which answers something else",
            ),
            (
                "health: { livenessPath: /readyz/live }",
                "health.livenessPath: `/readyz/live` is taken by `/readyz`, which answers something else",
            ),
            (
                "metrics: { path: /debug }",
                "metrics.path: `/debug` is taken by `/debug`, which answers something else",
            ),
            (
                "metrics: { path: '/{a}' }",
                "metrics.path: invalid path `/{a}`: expected letters, digits, slashes and -_.~",
            ),
            ("metrics: { path: /a/ }", "metrics.path: invalid path `/a/`: it must not end with a slash"),
        ] {
            assert_eq!(Config::from_yaml(text).unwrap_err().to_string(), expected);
        }
        Config::from_yaml("health: { livenessPath: /livez, readinessPath: /ready }").unwrap();
    }

    #[test]
    fn a_mistake_says_which_layer_made_it() {
        let key = KEYS.iter().find(|key| key.path == "metrics.port").unwrap();
        let mut layers = Layers::default();
        layers.yaml("a.yaml", "metrics: { port: x }");
        layers.set("--metrics-port", key, "y");
        assert_eq!(
            layers.finish().unwrap_err().to_string(),
            "a.yaml: metrics.port: invalid port `x`: expected 0-65535\n\
             --metrics-port (metrics.port): invalid port `y`: expected 0-65535"
        );
    }
}
