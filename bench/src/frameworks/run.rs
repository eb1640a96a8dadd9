//! One peer at work: started, listened to, and measured from outside.

use super::{Work, program::Program};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::{Instant, sleep, timeout_at},
};

/// Memory has settled when it stayed within a hundredth for this long.
const CALM: Duration = Duration::from_secs(3);
/// What never settles is measured after this time.
const RESTLESS: Duration = Duration::from_secs(30);
/// How many lines of a log an error shows.
const TAIL: usize = 5;

/// The work of a run.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Zero where nothing is written; else the value of `status.round`.
    pub number: u64,
    /// What a reconcile does.
    pub work: Work,
}

/// Why a peer did not get as far as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortfall {
    /// Its time was up.
    #[error("only {reached} {word} after {} s{said}", .after.as_secs())]
    Late {
        /// How far it had come.
        reached: usize,
        /// What was counted.
        word: String,
        /// How much time it had.
        after: Duration,
        /// What else it said last, in brackets, if it did.
        said: String,
    },
    /// It cannot be run, or it ended.
    #[error("{0}")]
    Failed(String),
}

/// A running peer; it is killed when this is dropped.
pub struct Run {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: tempfile::NamedTempFile,
    started: Instant,
}

impl Run {
    pub fn start(program: &Program, kubeconfig: &Path, workers: usize, round: Round) -> Result<Run, Shortfall> {
        let command = program.command.as_ref().map_err(|why| Shortfall::Failed(why.clone()))?;
        let [first, arguments @ ..] = command.as_slice() else {
            return Err(Shortfall::Failed("no program".into()));
        };
        let log = tempfile::NamedTempFile::new().map_err(failed)?;
        let errors = log.reopen().map_err(failed)?;
        let started = Instant::now();
        let mut child = Command::new(first)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("WORKERS", workers.to_string())
            .env("ROUND", round.number.to_string())
            .env("WORK", round.work.word())
            // Ours runs as a program does, without an election, as the others.
            .env("FLYBALL_LEADER_ELECTION_ENABLED", "false")
            .env("FLYBALL_METRICS_PORT", "0")
            .env("FLYBALL_HEALTH_PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Shortfall::Failed(format!("start {}: {error}", first.display())))?;
        let stdout = child.stdout.take().expect("it is piped");
        Ok(Run { child, lines: BufReader::new(stdout).lines(), log, started })
    }

    /// When the peer has said `word` with at least this count, measured from its start; it has this time from now.
    pub async fn until(&mut self, word: &str, count: usize, limit: Duration) -> Result<Duration, Shortfall> {
        let (end, mut reached, mut said) = (Instant::now() + limit, 0, String::new());
        loop {
            let late = |_| Shortfall::Late { reached, word: word.into(), after: limit, said: said.clone() };
            let line = timeout_at(end, self.lines.next_line()).await.map_err(late)?;
            let Some(line) = line.map_err(failed)? else {
                return Err(Shortfall::Failed(format!("it ended: {}", self.last_words())));
            };
            match line.strip_prefix(word).and_then(|rest| rest.trim().parse().ok()) {
                Some(count) => reached = count,
                None => said = format!(" ({line})"),
            }
            if reached >= count {
                return Ok(self.started.elapsed());
            }
        }
    }

    /// Processor time since its start.
    pub fn cpu(&self) -> Duration {
        self.child.id().map(cpu).unwrap_or_default()
    }

    /// Resident memory now and at its peak, in bytes.
    pub fn memory(&self) -> (f64, f64) {
        let status = self.child.id().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")));
        let status = status.and_then(Result::ok).unwrap_or_default();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0
        };
        (bytes("VmRSS:"), bytes("VmHWM:"))
    }

    /// Waits until its memory has settled.
    pub async fn settle(&self) {
        let start = Instant::now();
        let (mut calm, mut level) = (Instant::now(), self.memory().0);
        while calm.elapsed() < CALM && start.elapsed() < RESTLESS {
            sleep(Duration::from_millis(200)).await;
            let now = self.memory().0;
            if (now - level).abs() > level / 100.0 {
                (calm, level) = (Instant::now(), now);
            }
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join(" / ")
    }
}

fn failed(error: std::io::Error) -> Shortfall {
    Shortfall::Failed(error.to_string())
}

/// The processor time that a process has used: fields 14 and 15 of its `stat`, in hundredths of a second (proc(5)).
pub fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frameworks::Framework;

    fn shell(script: &str) -> Run {
        let command = Ok(["sh", "-c", script].map(Into::into).to_vec());
        let program = Program { framework: Framework::Kopf, command };
        Run::start(&program, Path::new("kubeconfig"), 1, Round { number: 2, work: Work::Status }).unwrap()
    }

    #[tokio::test]
    async fn a_peer_is_heard_when_it_has_said_enough() {
        let mut run = shell("echo hello; echo written 100; echo written $((ROUND * 100)); read forever");
        run.until("written", 200, Duration::from_secs(30)).await.unwrap();
    }

    #[tokio::test]
    async fn a_peer_that_ends_is_reported_with_its_last_words() {
        let mut run = shell("echo no such kind >&2; exit 3");
        let error = run.until("written", 200, Duration::from_secs(30)).await.unwrap_err();
        assert_eq!(error, Shortfall::Failed("it ended: no such kind".into()));
    }

    #[tokio::test]
    async fn a_peer_that_is_late_is_reported_with_how_far_it_came() {
        let mut run = shell("echo written 100; echo warming up; exec sleep 60");
        let error = run.until("written", 200, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(error.to_string(), "only 100 written after 1 s (warming up)");
    }

    #[test]
    fn processor_time_is_read_of_a_process() {
        let mut sum = 0u64;
        while cpu(std::process::id()).is_zero() {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(cpu(0).is_zero(), "there is no such process");
    }
}
