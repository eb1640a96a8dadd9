//! The log of a test: plain lines in the test's own output, stamped with the time that the test's clock shows.

use std::{cell::Cell, fmt, sync::OnceLock};
use tokio::time::Instant;
use tracing_subscriber::{
    EnvFilter,
    fmt::{MakeWriter, TestWriter, format::Writer, time::FormatTime},
    util::SubscriberInitExt,
};

/// When the first cluster of the process started: the origin for threads that have started none.
static FIRST: OnceLock<Instant> = OnceLock::new();

thread_local! {
    /// When the last cluster of this thread started. A test with a paused clock runs on one thread.
    static STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Starts the log of the process if `RUST_LOG` is set, and counts this thread's time from now.
pub(crate) fn start() {
    STARTED.set(Some(Instant::now()));
    FIRST.get_or_init(Instant::now);
    if let Ok(filter) = EnvFilter::try_from_default_env() {
        // Only the first call of a process counts.
        lines(filter, TestWriter::new()).try_init().unwrap_or_default();
    }
}

/// Plain lines with the test's time.
fn lines<W>(filter: EnvFilter, writer: W) -> impl SubscriberInitExt
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    logger.with_timer(SinceStart).with_writer(writer).finish()
}

/// The seconds since the cluster started: virtual ones where the clock is paused.
struct SinceStart;

impl FormatTime for SinceStart {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let started = STARTED.get().or(FIRST.get().copied());
        let elapsed = started.map(|started| started.elapsed()).unwrap_or_default();
        write!(writer, "{:>+10.3}s", elapsed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;
    use flyball::{Action, Context, Controller, Operator, Result};
    use k8s_openapi::api::core::v1::ConfigMap;
    use std::{
        io::Write,
        sync::{Arc, Mutex},
        time::Duration,
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

    /// Fails in the second minute of the test.
    async fn fail(_: Arc<ConfigMap>, _: Context) -> Result {
        tokio::time::sleep(Duration::from_secs(90)).await;
        Ok(Err("no disk").map(|()| Action::await_change())?)
    }

    /// The lines that are logged while a reconcile fails.
    async fn logged(filter: &str) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let _log = lines(filter.parse().expect("a filter"), move || writer.clone()).set_default();
        let cluster = Cluster::with(Operator::new("failer").controller(Controller::new(fail))).await;
        let ada = serde_json::json!({ "metadata": { "name": "ada" } });
        cluster.create::<ConfigMap>(serde_json::from_value(ada).expect("a ConfigMap")).await;
        cluster.until_event::<ConfigMap>("ada", "ReconcileFailed").await;
        String::from_utf8(buffer.0.lock().expect("nothing panics under this lock").clone()).expect("UTF-8")
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_has_the_time_of_the_tests_clock_and_no_colour() {
        let log = logged("info").await;
        let line = log.lines().find(|line| line.contains("reconcile failed")).expect(&log);
        assert!(line.trim_start().starts_with("+90.0"), "{line}");
        assert!(!log.contains('\u{1b}'), "{log}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_line_of_a_failure_names_its_object_at_every_level() {
        for filter in ["warn", "info", "flyball=debug"] {
            let log = logged(filter).await;
            let line = log.lines().find(|line| line.contains("reconcile failed")).expect(&log);
            assert!(line.contains("ConfigMap") && line.contains("default/ada"), "{filter}: {line}");
            assert!(line.contains("no disk") && line.contains("configmap"), "{filter}: {line}");
        }
    }
}
