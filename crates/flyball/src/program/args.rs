//! The command line that every operator has, made of the configuration's keys.

use crate::declare::operator::is_label;
use crate::program::config::controllers::{self, OPTIONS};
use crate::program::config::{ConfigError, KEYS, Key, Layers, is_section};
use crate::program::run::Variables;
use crate::{Config, Manifests, Operator};
use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{NonEmptyStringValueParser, PossibleValuesParser},
};
use serde_json::Value;
use std::path::PathBuf;

/// Adds arguments to a command.
pub(crate) type Augment = fn(Command) -> Command;

/// What an author adds to the command line.
pub(crate) struct Extension {
    /// Adds the flags that every command takes.
    pub(crate) flags: Augment,
    pub(crate) section: Option<&'static str>,
    pub(crate) subcommands: Vec<(&'static str, Augment)>,
}

impl Extension {
    /// Names that the framework has itself.
    pub(crate) fn mistakes(&self, name: &str) -> Vec<String> {
        let own = |augment: Augment| augment(Command::new("own"));
        let known: Vec<_> = run_arguments()
            .into_iter()
            .chain(scope_arguments(name))
            .chain(manifest_arguments())
            .collect();
        let taken =
            |argument: &Arg| known.iter().any(|known| known.get_id() == argument.get_id() || is_same(known, argument));
        let flags = own(self.flags);
        let mut mistakes: Vec<_> = flags
            .get_arguments()
            .filter(|argument| taken(argument))
            .map(|argument| format!("flag --{} is the framework's", argument.get_long().unwrap_or_default()))
            .collect();
        if let Some(section) = self.section
            && is_section(section)
        {
            mistakes.push(format!("section {section:?} is the framework's"));
        }
        for (command, augment) in &self.subcommands {
            if ["run", "crds", "rbac", "manifests", "migrate-storage", "help"].contains(command) {
                mistakes.push(format!("command {command:?} is the framework's"));
            }
            let config = config_argument();
            let twice = |argument: &&Arg| {
                let same = |other: &Arg| other.get_id() == argument.get_id() || is_same(other, argument);
                same(&config) || flags.get_arguments().any(same)
            };
            let twice = own(*augment)
                .get_arguments()
                .filter(twice)
                .map(|it| it.get_id().to_string())
                .collect::<Vec<_>>();
            mistakes.extend(twice.iter().map(|flag| format!("command {command:?} has two flags {flag:?}")));
        }
        mistakes
    }
}

fn is_same(one: &Arg, other: &Arg) -> bool {
    let long = one.get_long().is_some() && one.get_long() == other.get_long();
    long || one.get_short().is_some() && one.get_short() == other.get_short()
}

/// The command that rewrites stored objects.
pub(crate) const MIGRATE_STORAGE: &str = "migrate-storage";

/// The command of an operator: `run`, `crds`, `rbac`, `manifests`, `migrate-storage` and `help`, and what its author adds.
pub(crate) fn command(name: &str, extension: &Extension) -> Command {
    let flags = |command| (extension.flags)(command).about(None::<&str>);
    let file = extension.section.map(|_| config_argument());
    let printing = |command: Command| (extension.flags)(command.args(file.clone()));
    let root = Command::new("operator").args_conflicts_with_subcommands(true).args(run_arguments());
    let root = flags(root)
        .bin_name(name)
        .display_name(name)
        .about(format!("The {name} operator"))
        .after_help(after_help(name));
    let run = flags(Command::new("run").args(run_arguments()))
        .about("Run the operator; also what happens without a command")
        .after_help(precedence());
    let rbac = printing(Command::new("rbac").args(scope_arguments(name)))
        .about("Print the ServiceAccount, its roles and their bindings as YAML: no more rights than it needs");
    let manifests = printing(Command::new("manifests").args(scope_arguments(name)).args(manifest_arguments()))
        .about("Print everything that runs the operator in a cluster as YAML, to be applied at once");
    let crds = printing(Command::new("crds")).about("Print the CustomResourceDefinitions as YAML");
    let own = extension.subcommands.iter().map(|(name, augment)| {
        let flags = (extension.flags)(Command::new(*name).arg(config_argument())).about(None::<&str>);
        augment(flags)
    });
    let migrate = printing(Command::new(MIGRATE_STORAGE))
        .about("Rewrite stored objects in the version that is stored now, so that older ones can be dropped");
    root.subcommands([run, crds, rbac, manifests, migrate]).subcommands(own)
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

fn precedence() -> String {
    let options: Vec<_> = OPTIONS.iter().map(|option| format!("{} ({})", option.path, option.help)).collect();
    format!(
        "Flags override environment variables, which override the file, which overrides defaults.
A variable that is empty counts as unset.
The file's keys are the flags' in camelCase: --metrics-port is `port` under `metrics`.
Options of a controller are keys under `controllers.NAME`: --controller NAME.OPTION=VALUE, FLYBALL_CONTROLLERS_NAME_OPTION.
Options: {}.",
        options.join(", ")
    )
}

fn after_help(name: &str) -> String {
    let precedence = precedence();
    format!(
        "{precedence}

Examples:
  {name}                                    run, with the cluster of the kubeconfig or the pod
  {name} run --config operator.yaml         run as a file says
  {name} crds | kubectl apply -f -          install the kinds
  {name} manifests --image IMAGE | kubectl apply -f -
                                            install and run it in a cluster, with no more rights than it needs

Exit codes: 0 ended after SIGTERM or SIGINT, 1 failed, 2 wrong arguments or configuration."
    )
}

fn config_argument() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help(format!("A YAML file of the keys below, an OperatorConfig [env: {FILE}]"))
}

fn run_arguments() -> Vec<Arg> {
    let mut arguments = vec![config_argument()];
    arguments.extend(KEYS.iter().map(argument));
    let controller = Arg::new("controller")
        .long("controller")
        .value_name("NAME.OPTION=VALUE")
        .action(ArgAction::Append)
        .help_heading("Controllers")
        .help("An option of one controller, as in greeting.concurrency=4 [env: FLYBALL_CONTROLLERS_NAME_OPTION]");
    arguments.push(controller);
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
        Some("webhook") => "Webhooks",
        Some("logging") => "Logging",
        Some("tracing") => "Tracing",
        Some("shutdown") => "Shutdown",
        Some("crds") => "CustomResourceDefinitions",
        _ => "Scope",
    }
}

/// Reads the file, the environment and the flags; answers with the author's section of the file, too.
pub(crate) fn config(
    command: &str,
    arguments: &ArgMatches,
    variables: &Variables,
    section: Option<&str>,
) -> Result<(Config, Option<Value>), ConfigError> {
    let mut layers = Layers::with_section(section);
    let variable = |name: &str| variables.get(name).filter(|text| !text.is_empty()).cloned();
    let file = arguments.try_get_one("config").ok().flatten().cloned();
    if let Some(file) = file.or_else(|| variable(FILE).map(PathBuf::from)) {
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
    // Other commands have flags of these names that mean something else.
    for key in KEYS.iter().filter(|_| command == "run") {
        if let Some(text) = arguments.get_one::<String>(key.path) {
            layers.set(&format!("--{}", key.flag()), key, text);
        }
    }
    layers.finish()
}

/// Reads the options of an operator's controllers from the environment and the flags, and checks all of them.
pub(crate) fn controllers(
    config: &mut Config,
    operator: &Operator,
    arguments: &ArgMatches,
    variables: &Variables,
) -> Result<(), String> {
    let names: Vec<_> = operator.controllers().iter().map(|controller| &*controller.name).collect();
    let all: Vec<_> = variables.keys().cloned().collect();
    let mut mistakes = controllers::read_environment(config, &names, &all, |name| variables.get(name).cloned());
    for flag in arguments.get_many::<String>("controller").into_iter().flatten() {
        let read = controllers::read_flag(config, &names, flag);
        mistakes.extend(read.err().map(|mistake| format!("--controller {flag}: {mistake}")));
    }
    mistakes.extend(config.check_controllers(operator).err());
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(mistakes.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
        let matches = greeter()
            .try_get_matches_from(std::iter::once(&"greeter").chain(arguments))
            .map_err(|error| error.to_string())?;
        let matches = matches.subcommand_matches("run").unwrap_or(&matches).clone();
        let variables = variables.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let config = config("run", &matches, &variables, None).map_err(|error| error.to_string())?;
        Ok(config.0)
    }

    fn greeter() -> Command {
        let extension = Extension {
            flags: |command| command,
            section: None,
            subcommands: Vec::new(),
        };
        command("greeter", &extension)
    }

    #[test]
    fn the_command_line_is_sound() {
        greeter().debug_assert();
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
            let refusal = greeter().try_get_matches_from(arguments.iter().chain(&wrong));
            let refusal = refusal.unwrap_err();
            assert!(refusal.exit_code() == 2 && refusal.to_string().contains(wrong[0]), "{refusal}");
        }
    }

    #[test]
    fn a_mistake_says_where_it_was_made() {
        let mistake = parse(&["--config", "/no/such/file"], &[("FLYBALL_METRICS_PORT", "x")]).unwrap_err();
        assert!(mistake.starts_with("/no/such/file: No such file"), "{mistake}");
        assert!(mistake.ends_with("FLYBALL_METRICS_PORT (metrics.port): invalid port `x`: expected 0-65535"));
        assert!(
            parse(&["--webhook-ports", "1"], &[])
                .unwrap_err()
                .contains("unexpected argument '--webhook-ports'")
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
        let matches = greeter().try_get_matches_from(asked).unwrap();
        let objects = manifests(&operator, matches.subcommand_matches("manifests").unwrap()).all("a").unwrap();
        let deployment = objects.iter().find(|object| object.types.as_ref().unwrap().kind == "Deployment").unwrap();
        assert_eq!(
            (&deployment.data["spec"]["replicas"], deployment.metadata.namespace.as_deref()),
            (&3.into(), Some("b"))
        );
        let refusal = greeter().try_get_matches_from(["greeter", "manifests"]).unwrap_err();
        assert_eq!(refusal.exit_code(), 2);
        assert!(refusal.to_string().contains("--image <IMAGE>"), "{refusal}");
    }

    #[test]
    fn the_help_teaches_every_key() {
        let help = greeter().render_long_help().to_string();
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
