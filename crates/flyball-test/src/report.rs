//! What the operators of a test know about an object that did not become what was expected: failures, queues, watches.

use flyball::{Failing, QueuePosition, QueueState, Queued, Running};
use std::fmt::{self, Display, Formatter, Write};
use tokio::time::Instant;

/// How many objects of a controller are looked through.
const MAX_OBJECTS: usize = 10_000;
/// How many lines there are for each controller.
const MAX_LINES: usize = 10;

/// Writes what each operator reports: of the object itself, of every object that fails, and of watches that fail.
pub(crate) fn of<'a>(operators: impl Iterator<Item = (&'a str, &'a Running)>, object: &str) -> String {
    let mut report = String::new();
    for (name, running) in operators {
        let mut lines: Vec<String> =
            running.queues(MAX_OBJECTS).iter().flat_map(|queue| lines(queue, object)).collect();
        for watch in running.cache().watches() {
            if let Some(error) = watch.last_error.filter(|_| watch.failing_since.is_some()) {
                lines.push(format!("the watch of {} fails: {error}", watch.kind));
            }
        }
        if lines.is_empty() {
            lines.push("no failure, nothing queued for this object".into());
        }
        write!(report, "\noperator {name:?}:").expect("a String grows");
        for line in lines {
            write!(report, "\n  {line}").expect("a String grows");
        }
    }
    report
}

fn lines(queue: &QueueState, object: &str) -> Vec<String> {
    let named = |key: &dyn Display| format!("{} {key}", queue.kind);
    let mut lines = Vec::new();
    for failing in queue.failing.iter().take(MAX_LINES) {
        let queued = queue.objects.iter().find(|queued| queued.key == failing.key);
        let next = queued.map_or("not queued".into(), |queued| Next(queued).to_string());
        lines.push(format!("{}: {}; {next}", named(&failing.key), Failed(failing)));
    }
    let failing = |queued: &Queued| queue.failing.iter().any(|failing| failing.key == queued.key);
    let own = queue.objects.iter().filter(|queued| named(&queued.key) == object && !failing(queued));
    lines.extend(own.map(|queued| format!("{}: {}", named(&queued.key), Next(queued))));
    let more = queue.failing.len().saturating_sub(MAX_LINES);
    if more > 0 {
        lines.push(format!("{more} more objects of kind {} fail", queue.kind));
    }
    lines
}

/// How an object fails.
struct Failed<'a>(&'a Failing);

impl Display for Failed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Failing { failures, error, at, gave_up, .. } = self.0;
        let times = if *failures == 1 { "once" } else { "times in a row, last" };
        let count = if *failures == 1 {
            String::new()
        } else {
            format!("{failures} ")
        };
        let error = error.as_deref().unwrap_or("the error was not kept");
        write!(f, "failed {count}{times} {:.1?} ago: {error}", at.elapsed())?;
        if *gave_up {
            f.write_str("; not retried before a change")
        } else {
            Ok(())
        }
    }
}

/// When an object is reconciled next.
struct Next<'a>(&'a Queued);

impl Display for Next<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let why = &self.0.why;
        match self.0.position {
            QueuePosition::Ready(since) => {
                write!(f, "queued for {:.1?} without a free worker ({why})", since.elapsed())
            }
            QueuePosition::Until(time) => write!(f, "queued until {:.1?} from now ({why})", time - Instant::now()),
            QueuePosition::Running { since, .. } => write!(f, "being reconciled for {:.1?} ({why})", since.elapsed()),
            _ => write!(f, "queued ({why})"),
        }
    }
}
