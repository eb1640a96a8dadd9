//! `flyball::run` and [`Program`]: an operator as a program, with its arguments, configuration, log, client and signals.

use crate::program::args::{self, Extension, MIGRATE_STORAGE};
use crate::program::manifests::to_yaml;
use crate::program::{log, section};
use crate::webhook::registration;
use crate::{Config, Error, Manifests, Operator, Result, StorageMigration, migrate_storage};
use clap::{ArgMatches, Args, Command, error::ErrorKind as Refusal};
use futures::future::BoxFuture;
use kube::{Client, api::DynamicObject};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{ErrorKind, Write},
    net::{IpAddr, Ipv4Addr},
};
use tokio::signal::unix::{SignalKind, signal};

/// Runs an operator as its program's arguments say: `run` (or nothing), `crds`, `rbac`, `manifests`, `migrate-storage`, `help`.
///
/// Its configuration is put together from flags, environment and file; see [`Config`]. It ends after SIGTERM or SIGINT, once
/// the reconciles under way have ended; a second signal does not wait for them. Wrong arguments and a wrong configuration end
/// the process with exit code 2 and a message. [`Program`] adds flags, a section of the configuration and commands.
pub async fn run(operator: Operator) -> Result<()> {
    Program::new(operator.name()).run(|_| operator).await
}

/// An operator's program with flags, a section of the configuration file and commands of its author's.
///
/// `F` are the flags, which every command takes; `S` is the section. Keys that `S` does not have are refused by name.
///
/// ```no_run
/// # use flyball::{Operator, Program, Result, Settings};
/// /// Flags beside the framework's. Environment variables are clap's: `env = "…"`.
/// #[derive(clap::Args)]
/// struct Flags {
///     /// Only log what would be done.
///     #[arg(long)]
///     dry_run: bool,
/// }
///
/// /// The section `cloud` of the file that `--config` names.
/// #[derive(serde::Deserialize)]
/// struct Cloud {
///     zone: String,
/// }
///
/// /// Prints the zones.
/// #[derive(clap::Args)]
/// struct Zones {
///     #[arg(long)]
///     all: bool,
/// }
///
/// fn operator(zone: &str, dry_run: bool) -> Operator {
///     Operator::new("greeter")
/// }
///
/// # async fn main_() -> Result<()> {
/// Program::new("greeter")
///     .flags::<Flags>()
///     .section::<Cloud>("cloud")
///     .subcommand("zones", |zones: Zones, settings: Settings<Flags, Cloud>| async move {
///         println!("{}", settings.section.zone);
///         Ok(())
///     })
///     .run(|settings| operator(&settings.section.zone, settings.flags.dry_run))
///     .await
/// # }
/// ```
#[must_use = "a program does nothing before it runs"]
pub struct Program<F = NoFlags, S = NoSection> {
    name: String,
    section: Section<S>,
    subcommands: Vec<Subcommand<F, S>>,
    /// Declaration errors, reported when it runs.
    mistakes: Vec<String>,
}

/// No flags beside the framework's.
#[derive(Args, Clone, Debug, Default)]
pub struct NoFlags {}

/// No section beside the framework's.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSection;

/// What a program was started with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings<F = NoFlags, S = NoSection> {
    /// The author's flags.
    pub flags: F,
    /// The author's section of the configuration.
    pub section: S,
    /// The framework's configuration. Options of controllers by environment and flag are read once the operator is built, and
    /// are not in it.
    pub config: Config,
}

struct Section<S> {
    name: Option<&'static str>,
    read: fn(&str, Option<Value>) -> Result<S, Vec<String>>,
}

struct Subcommand<F, S> {
    name: &'static str,
    augment: fn(Command) -> Command,
    run: Handler<F, S>,
}

type Handler<F, S> = Box<dyn Fn(&ArgMatches, Settings<F, S>) -> Result<BoxFuture<'static, Result<()>>> + Send + Sync>;

impl Program {
    /// The program of an operator of that name, which is also the name of its command.
    pub fn new(name: impl Into<String>) -> Program {
        Program {
            name: name.into(),
            section: Section { name: None, read: |_, _| Ok(NoSection) },
            subcommands: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Adds flags, which every command takes. It comes first.
    pub fn flags<F: Args>(self) -> Program<F> {
        let mistakes = self.mistakes_before("flags");
        Program {
            name: self.name,
            section: self.section,
            subcommands: Vec::new(),
            mistakes,
        }
    }
}

impl<F: Args> Program<F> {
    /// Adds a section to the configuration file, read as `S`; an absent section is read as an empty one. It comes before
    /// [`Program::subcommand`].
    pub fn section<S: DeserializeOwned>(self, name: &'static str) -> Program<F, S> {
        let mistakes = self.mistakes_before("section");
        let section = Section { name: Some(name), read: section::read };
        Program { name: self.name, section, subcommands: Vec::new(), mistakes }
    }
}

impl<F, S> Program<F, S> {
    fn mistakes_before(&self, what: &str) -> Vec<String> {
        let mut mistakes = self.mistakes.clone();
        if !self.subcommands.is_empty() {
            mistakes.push(format!("call `{what}` before `subcommand`"));
        }
        mistakes
    }
}

impl<F: Args + Send + 'static, S: Send + 'static> Program<F, S> {
    /// Adds a command with the arguments `T`, whose documentation is the command's help.
    pub fn subcommand<T: Args, Fut>(
        mut self,
        name: &'static str,
        run: impl Fn(T, Settings<F, S>) -> Fut + Send + Sync + 'static,
    ) -> Program<F, S>
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let run: Handler<F, S> = Box::new(move |arguments, settings| {
            let given = T::from_arg_matches(arguments).map_err(Error::permanent)?;
            Ok(Box::pin(run(given, settings)))
        });
        self.subcommands.push(Subcommand { name, augment: T::augment_args, run });
        self
    }

    /// Runs the program as its arguments say: a command of the author's, or one of the framework's on the operator that
    /// `operator` builds; see [`run`].
    pub async fn run(self, operator: impl FnOnce(&Settings<F, S>) -> Operator) -> Result<()> {
        let variables = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
        let mut command = self.command()?;
        match self.started(&mut command, std::env::args_os(), variables.collect(), operator) {
            Err(Start::Refused(refusal)) => refusal.exit(),
            Err(Start::Failed(error)) => Err(error),
            Ok(Started::Subcommand(run)) => run.await,
            Ok(Started::Print(objects)) => print(&objects),
            Ok(Started::Serve(operator, config)) => serve(&operator, &config).await,
            Ok(Started::Migrate(operator)) => migrate(&operator).await,
        }
    }

    /// Reads arguments, as a test does; the first is the name of the program.
    ///
    /// The environment is the process's. The error is what the program prints before it ends with exit code 2.
    pub fn parse(&self, arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Settings<F, S>> {
        let variables = std::env::vars().collect();
        let matches = self.command()?.try_get_matches_from(arguments).map_err(Error::permanent)?;
        let (name, arguments) = matches.subcommand().unwrap_or(("run", &matches));
        self.settings(name, arguments, &variables).map_err(Error::permanent)
    }

    fn command(&self) -> Result<Command> {
        let extension = Extension {
            flags: F::augment_args,
            section: self.section.name,
            subcommands: self.subcommands.iter().map(|command| (command.name, command.augment)).collect(),
        };
        let mut mistakes = self.mistakes.clone();
        mistakes.extend(extension.mistakes(&self.name));
        match mistakes.is_empty() {
            true => Ok(args::command(&self.name, &extension)),
            false => Err(Error::permanent(format!("program {:?}: {}", self.name, mistakes.join("; ")))),
        }
    }

    /// What the arguments ask for, with everything read and checked.
    fn started(
        &self,
        command: &mut Command,
        arguments: impl IntoIterator<Item = OsString>,
        variables: Variables,
        operator: impl FnOnce(&Settings<F, S>) -> Operator,
    ) -> Result<Started, Start> {
        let matches = command.try_get_matches_from_mut(arguments).map_err(Start::Refused)?;
        let (name, arguments) = matches.subcommand().unwrap_or(("run", &matches));
        let mut refused = |mistake: String| Start::Refused(command.error(Refusal::ValueValidation, mistake));
        let settings = self.settings(name, arguments, &variables).map_err(&mut refused)?;
        if let Some(own) = self.subcommands.iter().find(|command| command.name == name) {
            return (own.run)(arguments, settings).map(Started::Subcommand).map_err(Start::Failed);
        }
        let operator = operator(&settings);
        if name == "run" {
            let mut config = settings.config;
            args::controllers(&mut config, &operator, arguments, &variables).map_err(refused)?;
            return Ok(Started::Serve(Box::new(operator), Box::new(config)));
        }
        if name == MIGRATE_STORAGE {
            return Ok(Started::Migrate(Box::new(operator)));
        }
        printed(&operator, name, arguments).map(Started::Print).map_err(Start::Failed)
    }

    fn settings(&self, name: &str, arguments: &ArgMatches, variables: &Variables) -> Result<Settings<F, S>, String> {
        let flags = F::from_arg_matches(arguments).map_err(|refusal| refusal.to_string())?;
        let own = self.subcommands.iter().any(|command| command.name == name);
        // What only prints needs no configuration, unless the operator depends on it.
        let (config, value) = match name == "run" || own || self.section.name.is_some() {
            true => args::config(name, arguments, variables, self.section.name).map_err(|error| error.to_string())?,
            false => Default::default(),
        };
        let section = (self.section.read)(self.section.name.unwrap_or_default(), value);
        let section = section.map_err(|mistakes| mistakes.join("\n"))?;
        Ok(Settings { flags, section, config })
    }
}

/// The environment.
pub(crate) type Variables = BTreeMap<String, String>;

/// What a program was asked for.
enum Started {
    Serve(Box<Operator>, Box<Config>),
    Print(Vec<DynamicObject>),
    Migrate(Box<Operator>),
    Subcommand(BoxFuture<'static, Result<()>>),
}

/// Why a program cannot do what it was asked for.
enum Start {
    /// The arguments or the configuration are wrong, or help was asked for.
    Refused(clap::Error),
    Failed(Error),
}

fn printed(operator: &Operator, command: &str, arguments: &ArgMatches) -> Result<Vec<DynamicObject>> {
    if command == "crds" {
        return Manifests::of(operator).crds();
    }
    operator.check()?;
    let manifests = args::manifests(operator, arguments);
    match arguments.try_get_one::<String>("image") {
        Ok(Some(image)) => manifests.all(image),
        _ => Ok(manifests.rbac()),
    }
}

/// Works until a signal ends it; then pending traces are sent.
async fn serve(operator: &Operator, config: &Config) -> Result<()> {
    let traces = log::start(config, operator.name())?;
    let ended = work(&operator.clone().config(config)).await;
    if let Some(traces) = traces {
        traces.end().await;
    }
    ended
}

async fn work(operator: &Operator) -> Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut signalled = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let cluster = cluster().await?;
    let operator = &reached_from(operator, &cluster, in_a_pod())?;
    tracing::info!(operator = operator.name(), cluster = %cluster.cluster_url, "starting");
    let running = tokio::select! {
        running = operator.start(cluster) => running?,
        () = signalled() => return Ok(()),
    };
    tracing::info!(operator = operator.name(), "running");
    signalled().await;
    tracing::info!(operator = operator.name(), "stopping");
    tokio::select! {
        () = running.stop() => {}
        () = signalled() => tracing::warn!("stopped before the reconciles under way had ended"),
    }
    Ok(())
}

async fn cluster() -> Result<kube::Config> {
    kube::Config::infer().await.map_err(|error| {
        Error::permanent(format!(
            "find a cluster: {error}; set KUBECONFIG to the kubeconfig of one, `flyball up` writes its own"
        ))
    })
}

/// Rewrites stored objects, and prints how far it is.
async fn migrate(operator: &Operator) -> Result<()> {
    let client = Client::try_from(cluster().await?)?;
    migrate_storage(&client, operator, |progress| {
        let StorageMigration { definition, version, migrated, remaining, done, .. } = progress;
        match (done, remaining) {
            (true, _) => println!(
                "{definition}: {version} is the only version that is stored; {migrated} objects were rewritten"
            ),
            (false, Some(left)) => {
                println!("{definition}: {migrated} objects are rewritten in {version}, {left} are left")
            }
            (false, None) => println!("{definition}: {migrated} objects are rewritten in {version}"),
        }
    })
    .await
}

/// Whether this process runs in the cluster, and a Service can lead to it.
fn in_a_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// The operator with webhooks that the API server can reach: by their Service in a pod, by a loopback address if the API server
/// is on this machine, and none otherwise.
fn reached_from(operator: &Operator, cluster: &kube::Config, in_a_pod: bool) -> Result<Operator> {
    let mut config = operator.configuration().cloned().unwrap_or_default();
    let webhook = &mut config.webhook;
    let decided = in_a_pod || !webhook.enabled || webhook.endpoint().is_some() || !registration::has_webhooks(operator);
    let host = cluster.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if decided {
        return Ok(operator.clone());
    }
    if is_local && webhook.port != 0 {
        webhook.address = Ipv4Addr::LOCALHOST.into();
        webhook.url = Some(format!("https://127.0.0.1:{}", webhook.port));
        tracing::info!(url = webhook.url, "the API server reaches the webhooks of this process by a URL");
        return Ok(operator.clone().config(&config));
    }
    let advice = "set webhook.url (--webhook-url) to an address by which it does";
    if !operator.conversions().is_empty() {
        return Err(Error::permanent(format!(
            "the API server {host} does not reach this process, which has to convert objects: {advice}"
        )));
    }
    webhook.enabled = false;
    tracing::warn!(
        api_server = host,
        "webhooks are left out: the API server does not reach this process; {advice}"
    );
    Ok(operator.clone().config(&config))
}

fn print(objects: &[DynamicObject]) -> Result<()> {
    match std::io::stdout().write_all(to_yaml(objects)?.as_bytes()) {
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

impl<F, S> std::fmt::Debug for Program<F, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Context, Controller};
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde::Deserialize;
    use std::sync::Arc;

    #[derive(Args, Debug)]
    struct Flags {
        /// Where to look.
        #[arg(long)]
        region: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Cloud {
        zone: String,
    }

    /// Checks something.
    #[derive(Args)]
    struct Check {
        #[arg(long)]
        deep: bool,
    }

    fn operator(name: &str) -> Operator {
        let greeting = Controller::new(|_: Arc<ConfigMap>, _: Context| async { Ok(Action::await_change()) });
        Operator::new("greeter").namespaces([name]).controller(greeting.named("greeting"))
    }

    fn program() -> Program<Flags, Cloud> {
        Program::new("greeter").flags::<Flags>().section::<Cloud>("cloud").subcommand(
            "check",
            |check: Check, settings: Settings<Flags, Cloud>| async move {
                Err(Error::permanent(format!("{} {}", check.deep, settings.section.zone)))
            },
        )
    }

    fn started<F: Args + Send + 'static, S: Send + 'static>(
        program: &Program<F, S>,
        arguments: &[&str],
        variables: &[(&str, &str)],
        build: impl FnOnce(&Settings<F, S>) -> Operator,
    ) -> Result<Started, String> {
        let mut command = program.command().map_err(|error| error.to_string())?;
        let arguments = ["greeter"].iter().chain(arguments).map(OsString::from);
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        program
            .started(&mut command, arguments, variables.collect(), build)
            .map_err(|refusal| match refusal {
                Start::Refused(refusal) => refusal.to_string(),
                Start::Failed(error) => error.to_string(),
            })
    }

    #[test]
    fn webhooks_are_reached_by_a_service_by_a_loopback_url_or_not_at_all() {
        use crate::{Review, Validation};
        async fn admit(_: Arc<ConfigMap>, _: Review<ConfigMap>) -> Result<()> {
            Ok(())
        }
        let operator = Operator::new("greeter").validates(Validation::new(admit)).config(&Config::default());
        let reached = |url: &str, in_a_pod: bool| {
            let operator = reached_from(&operator, &kube::Config::new(url.parse().unwrap()), in_a_pod).unwrap();
            let webhook = operator.configuration().unwrap().webhook.clone();
            (webhook.enabled, webhook.url, webhook.address.is_loopback())
        };
        let local = Some("https://127.0.0.1:9443".to_owned());
        assert_eq!(reached("https://127.0.0.1:6443", false), (true, local.clone(), true));
        assert_eq!(reached("https://[::1]:6443", false), (true, local, true));
        assert_eq!(reached("https://10.0.0.1", true), (true, None, false));
        assert_eq!(reached("https://cluster.example.dev", false), (false, None, false));
    }

    fn refusal<T>(started: Result<T, String>) -> String {
        started.map_or_else(|refusal| refusal, |_| "none".into())
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("operator.yaml");
        std::fs::write(&file, text).unwrap();
        (directory, file.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn a_program_has_flags_a_section_and_commands_of_its_author() {
        let (_directory, file) = file("cloud: { zone: a }\nmetrics: { port: 1 }");
        let arguments = ["--config", &file, "--region", "north"];
        let mut region = None;
        let build = |settings: &Settings<Flags, Cloud>| {
            region = settings.flags.region.clone();
            operator(&settings.section.zone)
        };
        let Ok(Started::Serve(operator, config)) = started(&program(), &arguments, &[], build) else {
            panic!("it serves")
        };
        assert_eq!((operator.namespaces_watched(), config.metrics.port), (&["a".to_owned()][..], 1));
        assert_eq!(region.as_deref(), Some("north"));
        let run = |_: &Settings<_, _>| unreachable!("a command needs no operator");
        let arguments = ["check", "--deep", "--config", &file];
        let Ok(Started::Subcommand(check)) = started(&program(), &arguments, &[], run) else {
            panic!("it checks")
        };
        assert_eq!(check.await.unwrap_err().to_string(), "true a");
        let print = started(&program(), &["rbac", "--config", &file], &[], |settings| {
            super::tests::operator(&settings.section.zone)
        });
        assert!(matches!(print, Ok(Started::Print(objects)) if !objects.is_empty()));
        let help = program().command().unwrap().render_long_help().to_string();
        assert!(
            help.contains("--region <REGION>") && help.contains("check            Checks something"),
            "{help}"
        );
    }

    #[test]
    fn a_section_that_is_wrong_is_refused_by_its_keys() {
        let (_directory, wrong) = file("cloud: { zone: a, zoone: b }");
        let refused = refusal(started(&program(), &["--config", &wrong], &[], |_| operator("a")));
        assert!(refused.contains("cloud.zoone: no such key"), "{refused}");
        let refused = refusal(started(&program(), &[], &[], |_| operator("a")));
        assert!(refused.contains("cloud: missing field `zone`"), "{refused}");
        let (_directory, wrong) = file("clouds: {}");
        let refused = refusal(started(&program(), &["crds", "--config", &wrong], &[], |_| operator("a")));
        assert!(
            refused.contains("clouds: no such key; there are") && refused.contains(", cloud"),
            "{refused}"
        );
    }

    #[test]
    fn names_that_the_framework_has_are_refused() {
        #[derive(Args)]
        struct Taken {
            #[arg(long)]
            metrics_port: u16,
            #[arg(long)]
            image: String,
        }
        let taken = Program::new("greeter").flags::<Taken>().section::<Cloud>("metrics");
        let taken = taken.subcommand("crds", |_: Check, _: Settings<Taken, Cloud>| async { Ok(()) });
        let refused = taken.command().unwrap_err().to_string();
        for part in [
            "flag --metrics-port",
            "flag --image",
            "section \"metrics\"",
            "command \"crds\"",
        ] {
            assert!(refused.contains(&format!("{part} is the framework's")), "{refused}");
        }
        let late = Program::new("greeter").subcommand("check", |_: Check, _: Settings| async { Ok(()) });
        let refused = late.section::<Cloud>("cloud").command().unwrap_err().to_string();
        assert!(refused.contains("call `section` before `subcommand`"), "{refused}");
    }

    #[test]
    fn options_of_controllers_come_from_flags_over_the_environment_over_the_file() {
        let (_directory, file) =
            file("controllers: { greeting: { concurrency: 1, timeout: 1s, resync: 1h } }\nshutdown: { grace: 7s }");
        let variables = [
            ("FLYBALL_CONTROLLERS_GREETING_CONCURRENCY", "2"),
            ("FLYBALL_CONTROLLERS_GREETING_TIMEOUT", "2s"),
            ("FLYBALL_CONFIG", &*file),
        ];
        let program = Program::new("greeter");
        let arguments = [
            "run",
            "--controller",
            "greeting.concurrency=3",
            "--controller",
            "greeting.rate=5",
        ];
        let Ok(Started::Serve(built, config)) = started(&program, &arguments, &variables, |_| operator("a")) else {
            panic!("it serves")
        };
        let built = config.applied_to(*built).unwrap();
        let greeting = &built.controllers()[0];
        assert_eq!((greeting.concurrency, greeting.timeout.as_secs()), (3, 2));
        assert_eq!(greeting.resync.unwrap().as_secs(), 3_600);
        assert!(greeting.rate.is_some() && built.shutdown_grace.as_secs() == 7);
        let refused = refusal(started(&program, &["--controller", "gretting.rate=5"], &[], |_| operator("a")));
        assert!(
            refused.contains("controllers.gretting: no such controller; there are greeting"),
            "{refused}"
        );
    }
}
