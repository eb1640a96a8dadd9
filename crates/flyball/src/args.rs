//! The command line that every operator has, made of the configuration's keys.

use crate::{
    Config, Operator,
    config::{ConfigError, KEYS, Key, Layers},
};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use std::path::PathBuf;

/// The command of an operator: `run`, `crds` and `help`.
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
}

const PRECEDENCE: &str =
    "A flag is heard over its environment variable, that over the file, and the file over the default.
The file's keys are the flags' in camelCase: --metrics-port is `port` under `metrics`.";

fn after_help(name: &str) -> String {
    format!(
        "{PRECEDENCE}

Examples:
  {name}                                    run, with the cluster of the kubeconfig or the pod
  {name} run --config operator.yaml         run as a file says
  {name} crds | kubectl apply -f -          install the kinds

Exit codes: 0 ended after SIGTERM or SIGINT, 1 failed, 2 wrong arguments or configuration."
    )
}

fn run_arguments() -> Vec<Arg> {
    let config = Arg::new("config")
        .long("config")
        .env("FLYBALL_CONFIG")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("A YAML file of the keys below, an OperatorConfig");
    let mut arguments = vec![config];
    arguments.extend(KEYS.iter().map(argument));
    arguments
}

fn argument(key: &'static Key) -> Arg {
    let default = (key.get)(&Config::default());
    let default = if default.is_empty() {
        default
    } else {
        format!(", default: {default}")
    };
    let argument = Arg::new(key.path)
        .long(key.flag)
        .value_name(key.value)
        .action(ArgAction::Set)
        .help_heading(heading(key.path))
        .help(format!("{} [env: {}{default}]", key.help, key.variables.join(", ")));
    let argument = match key.path {
        "namespaces" => argument.conflicts_with("namespace"),
        _ => argument,
    };
    if key.value == "BOOL" {
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
        _ => "Scope",
    }
}

/// Hears the file, the environment and the flags.
pub(crate) fn config(arguments: &ArgMatches, variable: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let mut layers = Layers::default();
    if let Some(file) = arguments.get_one::<PathBuf>("config") {
        let name = file.display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => layers.yaml(&name, &text),
            Err(error) => layers.mistake(format!("{name}: {error}")),
        }
    }
    for key in &KEYS {
        let given = key.variables.iter().find_map(|name| Some((name, variable(name)?)));
        if let Some((name, text)) = given {
            layers.set(name, key, &text);
        }
    }
    for key in &KEYS {
        if let Some(text) = arguments.get_one::<String>(key.path) {
            layers.set(&format!("--{}", key.flag), key, text);
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
    fn the_help_teaches_every_key() {
        let help = command(&Operator::new("greeter")).render_long_help().to_string();
        for key in &KEYS {
            assert!(
                help.contains(&format!("--{}", key.flag)) && help.contains(key.variables[0]),
                "{}",
                key.path
            );
        }
        assert!(help.contains("greeter crds | kubectl apply -f -"), "{help}");
    }
}
