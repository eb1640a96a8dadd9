//! The command line that every operator has, made of the configuration's keys.

use crate::declare::operator::is_label;
use crate::program::config::{ConfigError, KEYS, Key, Layers};
use crate::{Config, Manifests, Operator};
use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{NonEmptyStringValueParser, PossibleValuesParser},
};
use std::path::PathBuf;

/// The command of an operator: `run`, `crds`, `rbac`, `manifests` and `help`.
pub(crate) fn command(operator: &Operator) -> Command {
    let name = operator.name();
    Command::new("operator")
        .bin_name(name)
        .display_name(name)
        .about(format!("The {name} operator"))
        .after_help(after_help(name))
        .args_conflicts_with_subcommands(true)
        .args(run_arguments())
        .subcommand(
            Command::new("run")
                .about("Run the operator; also what happens without a command")
                .after_help(PRECEDENCE)
                .args(run_arguments()),
        )
        .subcommand(Command::new("crds").about("Print the CustomResourceDefinitions as YAML"))
        .subcommand(
            Command::new("rbac")
                .about("Print the ServiceAccount, its roles and their bindings as YAML: no more rights than it needs")
                .args(scope_arguments(name)),
        )
        .subcommand(
            Command::new("manifests")
                .about("Print everything that runs the operator in a cluster as YAML, to be applied at once")
                .args(scope_arguments(name))
                .args(manifest_arguments()),
        )
}

fn scope_arguments(name: &str) -> [Arg; 2] {
    let namespace = Arg::new("namespace")
        .long("namespace")
        .value_name("NAMESPACE")
        .value_parser(namespace_name)
        .help(format!("The namespace that the operator runs in [default: {name}-system]"));
    let namespaces = Arg::new("namespaces")
        .long("namespaces")
        .value_name("NAMESPACE,…")
        .value_delimiter(',')
        .value_parser(namespace_name)
        .help("The namespaces that it watches, all unless given; it gets a Role in each, not a ClusterRole");
    [namespace, namespaces]
}

fn namespace_name(text: &str) -> Result<String, &'static str> {
    match is_label(text) {
        true => Ok(text.to_owned()),
        false => Err("a namespace is lower-case letters, digits and dashes, 63 at most"),
    }
}

fn manifest_arguments() -> [Arg; 4] {
    let image = Arg::new("image")
        .long("image")
        .value_name("IMAGE")
        .value_parser(NonEmptyStringValueParser::new())
        .required(true);
    let replicas = Arg::new("replicas")
        .long("replicas")
        .value_name("NUMBER")
        .value_parser(clap::value_parser!(u32));
    let without = Arg::new("without-namespace").long("without-namespace").action(ArgAction::SetTrue);
    let monitor = Arg::new("service-monitor").long("service-monitor").action(ArgAction::SetTrue);
    [
        image.help("The image of the operator; its user must be a number other than 0"),
        replicas.help("How many run, of which one works [default: 2]"),
        without.help("Leave the Namespace out: it is there already"),
        monitor.help("Add a ServiceMonitor; the cluster must know the kind, which is Prometheus Operator's"),
    ]
}

/// What `rbac` and `manifests` are asked for.
pub(crate) fn manifests<'a>(operator: &'a Operator, arguments: &ArgMatches) -> Manifests<'a> {
    let mut manifests = Manifests::of(operator);
    if let Some(namespace) = arguments.get_one::<String>("namespace") {
        manifests = manifests.namespace(namespace);
    }
    if let Some(namespaces) = arguments.get_many::<String>("namespaces") {
        manifests = manifests.watching(namespaces);
    }
    if let Ok(Some(replicas)) = arguments.try_get_one::<u32>("replicas") {
        manifests = manifests.replicas(*replicas);
    }
    let is_set = |name| matches!(arguments.try_get_one(name), Ok(Some(true)));
    if is_set("without-namespace") {
        manifests = manifests.without_namespace();
    }
    if is_set("service-monitor") {
        manifests = manifests.service_monitor();
    }
    manifests
}

/// The variable that names the file.
const FILE: &str = "FLYBALL_CONFIG";

const PRECEDENCE: &str =
    "A flag is heard over its environment variable, that over the file, and the file over the default.
A variable that is empty is not heard.
The file's keys are the flags' in camelCase: --metrics-port is `port` under `metrics`.";

fn after_help(name: &str) -> String {
    format!(
        "{PRECEDENCE}

Examples:
  {name}                                    run, with the cluster of the kubeconfig or the pod
  {name} run --config operator.yaml         run as a file says
  {name} crds | kubectl apply -f -          install the kinds
  {name} manifests --image IMAGE | kubectl apply -f -
                                            install and run it in a cluster, with no more rights than it needs

Exit codes: 0 ended after SIGTERM or SIGINT, 1 failed, 2 wrong arguments or configuration."
    )
}

fn run_arguments() -> Vec<Arg> {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help(format!("A YAML file of the keys below, an OperatorConfig [env: {FILE}]"));
    let mut arguments = vec![config];
    arguments.extend(KEYS.iter().map(argument));
    arguments
}

fn argument(key: &'static Key) -> Arg {
    let default = key.default();
    let default = if default.is_empty() {
        default
    } else {
        format!(", default: {default}")
    };
    let argument = Arg::new(key.path)
        .long(key.flag())
        .value_name(key.value())
        .action(ArgAction::Set)
        .help_heading(heading(key.path))
        .help(format!("{} [env: {}{default}]", key.help, key.variables().join(", ")));
    let argument = match key.path {
        "namespaces" => argument.conflicts_with("namespace"),
        _ => argument,
    };
    if key.value() == "BOOL" {
        let values = PossibleValuesParser::new(["true", "false"]);
        return argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_parser(values)
            .hide_possible_values(true);
    }
    argument
}

fn heading(path: &str) -> &'static str {
    match path.split('.').next() {
        Some("leaderElection") => "Leader election",
        Some("metrics") => "Metrics",
        Some("health") => "Health",
        Some("logging") => "Logging",
        Some("tracing") => "Tracing",
        _ => "Scope",
    }
}

/// Hears the file, the environment and the flags.
pub(crate) fn config(arguments: &ArgMatches, variable: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let mut layers = Layers::default();
    let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
    let file = arguments.get_one("config").cloned().or_else(|| variable(FILE).map(PathBuf::from));
    if let Some(file) = file {
        let name = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(text) => layers.yaml(&name, &text),
            Err(error) => layers.mistake(format!("{name}: {error}")),
        }
    }
    let [one, several] = ["FLYBALL_NAMESPACE", "FLYBALL_NAMESPACES"];
    if variable(one).is_some() && variable(several).is_some() {
        layers.mistake(format!("{several} (namespaces): {one} is given too; give one of them"));
    }
    for key in &KEYS {
        let given = key.variables().into_iter().find_map(|name| variable(&name).map(|text| (name, text)));
        if let Some((name, text)) = given {
            layers.set(&name, key, &text);
        }
    }
    for key in &KEYS {
        if let Some(text) = arguments.get_one::<String>(key.path) {
            layers.set(&format!("--{}", key.flag()), key, text);
        }
    }
    layers.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
        let command = command(&Operator::new("greeter"));
        let matches = command
            .try_get_matches_from(std::iter::once(&"greeter").chain(arguments))
            .map_err(|error| error.to_string())?;
        let matches = matches.subcommand_matches("run").unwrap_or(&matches).clone();
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| text.to_string());
        config(&matches, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound() {
        command(&Operator::new("greeter")).debug_assert();
    }

    #[test]
    fn flags_are_heard_over_the_environment_and_that_over_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("operator.yaml");
        std::fs::write(&file, "metrics: { port: 1, path: /file }\nhealth: { port: 1 }\nlogging: { level: debug }")
            .unwrap();
        let file = file.to_str().unwrap();
        let variables = [
            ("FLYBALL_METRICS_PORT", "2"),
            ("FLYBALL_HEALTH_PORT", "2"),
            ("RUST_LOG", "warn"),
        ];
        for run in [&[][..], &["run"]] {
            let arguments = [
                run,
                &[
                    "--config",
                    file,
                    "--metrics-port",
                    "3",
                    "--leader-election-enabled=false",
                ],
            ]
            .concat();
            let config = parse(&arguments, &variables).unwrap();
            assert_eq!((config.metrics.port, config.health.port), (3, 2));
            assert_eq!((config.metrics.path.as_str(), config.logging.level.as_str()), ("/file", "warn"));
            assert!(!config.leader_election.enabled);
        }
        assert_eq!(parse(&[], &[]).unwrap(), Config::default());
        assert!(parse(&["--leader-election-enabled"], &[]).unwrap().leader_election.enabled);
    }

    #[test]
    fn an_empty_variable_is_not_heard() {
        let variables = [
            ("FLYBALL_CONFIG", ""),
            ("FLYBALL_METRICS_PORT", ""),
            ("FLYBALL_LOGGING_LEVEL", ""),
            ("RUST_LOG", "debug"),
            ("FLYBALL_NAMESPACE", ""),
            ("FLYBALL_NAMESPACES", "a,b"),
        ];
        let config = parse(&[], &variables).unwrap();
        assert_eq!((config.metrics.port, config.logging.level.as_str()), (8080, "debug"));
        assert_eq!(config.namespaces, ["a", "b"]);
        let mistake = parse(&[], &[("FLYBALL_NAMESPACE", "a"), ("FLYBALL_NAMESPACES", "b")]).unwrap_err();
        assert_eq!(
            mistake,
            "FLYBALL_NAMESPACES (namespaces): FLYBALL_NAMESPACE is given too; give one of them"
        );
        let mistake = parse(&[], &[("FLYBALL_CONFIG", "/no/such/file")]).unwrap_err();
        assert!(mistake.starts_with("/no/such/file: No such file"), "{mistake}");
    }

    #[test]
    fn manifests_of_no_image_or_in_no_namespace_are_refused() {
        for wrong in [
            ["--image", ""],
            ["--namespace", "Not One"],
            ["--namespaces", "a,,b"],
            ["--namespaces", "a,B"],
            ["--replicas", "some"],
        ] {
            let arguments = ["greeter", "manifests", "--image", "a"];
            let arguments = &arguments[..if wrong[0] == "--image" { 2 } else { 4 }];
            let refusal = command(&Operator::new("greeter")).try_get_matches_from(arguments.iter().chain(&wrong));
            let refusal = refusal.unwrap_err();
            assert!(refusal.exit_code() == 2 && refusal.to_string().contains(wrong[0]), "{refusal}");
        }
    }

    #[test]
    fn a_mistake_says_where_it_was_made() {
        let mistake = parse(&["--config", "/no/such/file"], &[("FLYBALL_METRICS_PORT", "x")]).unwrap_err();
        assert!(mistake.starts_with("/no/such/file: No such file"), "{mistake}");
        assert!(mistake.ends_with("FLYBALL_METRICS_PORT (metrics.port): `x` is no port: a number from 0 to 65535"));
        assert!(
            parse(&["--webhook-port", "1"], &[])
                .unwrap_err()
                .contains("unexpected argument '--webhook-port'")
        );
        assert!(
            parse(&["--namespace", "a", "--namespaces", "b"], &[])
                .unwrap_err()
                .contains("cannot be used with")
        );
        assert!(parse(&["walk"], &[]).unwrap_err().contains("unrecognized subcommand 'walk'"));
    }

    #[test]
    fn manifests_are_asked_for_by_flags() {
        let operator = Operator::new("greeter");
        let asked = [
            "greeter",
            "manifests",
            "--image",
            "a",
            "--namespace",
            "b",
            "--namespaces",
            "c,d",
            "--replicas",
            "3",
        ];
        let matches = command(&operator).try_get_matches_from(asked).unwrap();
        let objects = manifests(&operator, matches.subcommand_matches("manifests").unwrap()).all("a").unwrap();
        let deployment = objects.iter().find(|object| object.types.as_ref().unwrap().kind == "Deployment").unwrap();
        assert_eq!(
            (&deployment.data["spec"]["replicas"], deployment.metadata.namespace.as_deref()),
            (&3.into(), Some("b"))
        );
        let refusal = command(&operator).try_get_matches_from(["greeter", "manifests"]).unwrap_err();
        assert_eq!(refusal.exit_code(), 2);
        assert!(refusal.to_string().contains("--image <IMAGE>"), "{refusal}");
    }

    #[test]
    fn the_help_teaches_every_key() {
        let help = command(&Operator::new("greeter")).render_long_help().to_string();
        for key in &KEYS {
            assert!(
                help.contains(&format!("--{}", key.flag())) && help.contains(&key.variables()[0]),
                "{}",
                key.path
            );
        }
        assert!(help.contains("greeter crds | kubectl apply -f -"), "{help}");
    }
}
