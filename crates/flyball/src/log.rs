//! The log of an operator that runs as a program: text or JSON on stderr, at levels that can be changed while it runs.

use crate::{
    Result,
    config::{LogFormat, Logging},
};
use std::{io::IsTerminal, sync::OnceLock};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

/// The filter of the process's log, once it is set up. There is one log per process, as tracing has it.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Sets up the process's log, once.
pub(crate) fn start(logging: &Logging) -> Result<()> {
    let terminal = std::io::stderr().is_terminal();
    let json = match logging.format {
        LogFormat::Auto => !terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&logging.level)?);
    let lines = lines(json, terminal, std::io::stderr);
    tracing_subscriber::registry().with(filter).with(lines).try_init()?;
    FILTER.get_or_init(|| handle);
    Ok(())
}

/// What is logged; nothing if the program set up its log itself.
pub(crate) fn level() -> Option<String> {
    FILTER.get()?.with_current(ToString::to_string).ok()
}

/// Changes what is logged, unless the program set up its log itself.
pub(crate) fn set_level(level: &str) -> Option<Result<(), String>> {
    let handle = FILTER.get()?;
    let filter = match EnvFilter::try_new(level) {
        Ok(filter) if !level.is_empty() => filter,
        _ => {
            return Some(Err(format!(
                "`{level}` is no level: error, warn, info, debug, trace, or `info,kube=debug`"
            )));
        }
    };
    Some(handle.reload(filter).map_err(|error| error.to_string()))
}

/// Lines with the fields of the spans around them, among them the reconcile's id and why it runs.
fn lines<S, W>(json: bool, colours: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    if json {
        let lines = fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(writer);
        Box::new(lines)
    } else {
        Box::new(fmt::layer().with_ansi(colours).with_writer(writer))
    }
}
