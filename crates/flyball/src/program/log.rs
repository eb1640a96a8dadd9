//! The log of an operator that runs as a program: text or JSON on stderr, at levels that can be changed while it runs.

use crate::program::config::LogFormat;
use crate::program::traces::Traces;
use crate::{Config, Result};
use std::{io::IsTerminal, sync::OnceLock};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::LevelFilter,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

/// The filter of the process's log, once it is set up. There is one log per process, as tracing has it.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Sets up the process's log, once, and its traces if there is somewhere to send them to.
pub(crate) fn start(config: &Config, operator: &str) -> Result<Option<Traces>> {
    let terminal = std::io::stderr().is_terminal();
    let json = match config.logging.format {
        LogFormat::Auto => !terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let (filter, handle) = reload::Layer::new(filter(&config.logging.level)?);
    let traces = Traces::start(&config.tracing, operator)?;
    match &traces {
        None => {
            let lines = lines(json, terminal, std::io::stderr);
            tracing_subscriber::registry().with(filter).with(lines).try_init()?;
        }
        // What is traced does not depend on what is logged.
        Some(traces) => {
            let lines = lines(json, terminal, std::io::stderr).with_filter(filter);
            tracing_subscriber::registry().with(lines).with(traces.layer()).try_init()?;
        }
    }
    FILTER.get_or_init(|| handle);
    Ok(traces)
}

/// What is logged; nothing if the program set up its log itself.
pub(crate) fn level() -> Option<String> {
    FILTER.get()?.with_current(ToString::to_string).ok()
}

/// Changes what is logged, unless the program set up its log itself.
pub(crate) fn set_level(level: &str) -> Option<Result<(), String>> {
    let handle = FILTER.get()?;
    Some(filter(level).and_then(|filter| handle.reload(filter).map_err(|error| error.to_string())))
}

/// Reads what is to be logged. A word alone is a level: a misspelt one would pass for a target, and nothing else be logged.
pub(crate) fn filter(levels: &str) -> Result<EnvFilter, String> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let mut directives = levels.split(',');
    let filter = directives.all(|directive| directive.contains('=') || is_level(directive));
    let filter = filter.then(|| EnvFilter::try_new(levels).ok()).flatten();
    filter.ok_or_else(|| {
        format!("invalid level `{levels}`: expected error, warn, info, debug, trace, or `info,kube=debug`")
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nothing panics under this lock").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let lines = lines(json, false, move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let _span = tracing::info_span!("reconcile", id = "00ff", why = "Secret default/ada changed").entered();
            tracing::warn!(failures = 2, "reconcile failed");
        });
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        for levels in ["", "inof", "info,", "info,kube", "info,kube=loud", "a=b=c"] {
            assert!(
                filter(levels).is_err_and(|refusal| refusal.contains(": expected error, warn")),
                "{levels}"
            );
        }
        for levels in [
            "info",
            "WARN",
            "off",
            "info,kube=debug",
            "info,kube::client=trace",
            "error,[reconcile{id=1}]=debug",
        ] {
            assert!(filter(levels).is_ok(), "{levels}");
        }
    }

    #[test]
    fn every_line_says_which_reconcile_it_is_of_and_why_it_runs() {
        let line: serde_json::Value = serde_json::from_str(&logged(true)).unwrap();
        assert_eq!((&line["level"], &line["message"]), (&"WARN".into(), &"reconcile failed".into()));
        assert_eq!(line["failures"], 2);
        assert_eq!((&line["span"]["id"], &line["span"]["name"]), (&"00ff".into(), &"reconcile".into()));
        assert_eq!(line["span"]["why"], "Secret default/ada changed");
        let text = logged(false);
        assert!(text.contains("reconcile{id=\"00ff\" why=\"Secret default/ada changed\"}"), "{text}");
    }
}
