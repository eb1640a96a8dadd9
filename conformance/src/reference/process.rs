//! One program of the control plane, which never outlives us: not after a panic, not after `kill -9`.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Error;

/// Runs `"$@"` until it ends or standard input closes, which it does when we let go of it or die, however we die.
/// Then the guard's `read` returns; the last keeper out takes the directory with it.
const KEEPER: &str = r#"
directory=$1 name=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- & program=$!
exec 2>/dev/null
echo $program >"$directory/$name.pid"
{ read -r _ <&3; trap '' TERM; kill -KILL $program; true; } & guard=$!
exec 3<&-
wait $program; status=$?
rm -f "$directory/$name.pid"
kill -TERM $guard
if wait $guard; then ls "$directory"/*.pid >/dev/null || rm -rf "$directory"; fi
exit $status
"#;

/// How many lines of a log an error shows.
const TAIL: usize = 12;

/// A started program and the shell that keeps it.
pub struct Process {
    /// The program's name, which its log and pid file carry too.
    pub name: &'static str,
    keeper: Child,
    directory: PathBuf,
}

impl Process {
    /// Starts `program` in a process group of its own, so that Ctrl-C reaches only us.
    pub fn start(name: &'static str, program: &Path, directory: &Path, arguments: &[String]) -> Result<Self, Error> {
        let log = File::create(directory.join(format!("{name}.log"))).map_err(Error::Directory)?;
        let errors = log.try_clone().map_err(Error::Directory)?;
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(directory)
            .arg(name)
            .arg(program)
            .args(arguments)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|source| Error::Start { name, program: program.to_owned(), source })?;
        Ok(Self { name, keeper, directory: directory.to_owned() })
    }

    /// The process id of the shell that keeps the program.
    pub fn keeper(&self) -> u32 {
        self.keeper.id()
    }

    /// The program's process id, once the keeper has written it down.
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.directory.join(format!("{}.pid", self.name)))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Fails, with the end of the log, if the program has ended.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.keeper.try_wait() {
            Ok(Some(status)) => Err(Error::Ended { name: self.name, status, log: self.log_tail() }),
            Ok(None) => Ok(()),
            Err(source) => Err(Error::Start { name: self.name, program: "sh".into(), source }),
        }
    }

    /// The last lines of what the program wrote.
    pub fn log_tail(&self) -> String {
        let log = fs::read(self.directory.join(format!("{}.log", self.name)));
        tail(&String::from_utf8_lossy(&log.unwrap_or_default()))
    }

    /// Ends the program, and waits until it is gone.
    pub fn stop(&mut self) -> io::Result<()> {
        drop(self.keeper.stdin.take());
        self.keeper.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("stop {}: {error}", self.name);
        }
    }
}

/// The last lines of `text`.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

/// Whether a process of this id exists.
pub fn exists(pid: u32) -> io::Result<bool> {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -0 {pid}")])
        .stderr(Stdio::null())
        .status()?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(directory: &Path) -> Process {
        let process = Process::start("sleeper", Path::new("sleep"), directory, &["1000".into()]).unwrap();
        while process.pid().is_none() {
            std::thread::yield_now();
        }
        process
    }

    #[test]
    fn a_dropped_process_is_gone_and_its_directory_too() {
        let directory = tempfile::tempdir().unwrap();
        let process = sleeper(directory.path());
        let pid = process.pid().unwrap();
        assert!(exists(pid).unwrap());

        drop(process);

        assert!(!exists(pid).unwrap());
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_panic_ends_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let path = directory.path().to_owned();
        let panicked = std::thread::spawn(move || {
            let process = sleeper(&path);
            sender.send(process.pid().unwrap()).unwrap();
            panic!("on purpose");
        });

        let pid = receiver.recv().unwrap();
        assert!(panicked.join().is_err());

        assert!(!exists(pid).unwrap());
    }

    #[test]
    fn an_early_end_is_told_with_the_end_of_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let script = "echo begin; echo no such flag; exit 3".to_owned();
        let mut process = Process::start("broken", Path::new("sh"), directory.path(), &["-c".into(), script]).unwrap();

        let error = loop {
            if let Err(error) = process.check() {
                break error;
            }
            std::thread::yield_now();
        };

        let text = "broken ended with exit status: 3 before it was ready. Its last words:\nbegin\nno such flag";
        assert_eq!(error.to_string(), text);
    }
}
