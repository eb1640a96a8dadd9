//! An acknowledged write survives `kill -9`. `FLYBALL_KILLS` kills more often than 20 times, `FLYBALL_SEED` repeats a run as
//! far as the machine lets it.
#![allow(clippy::unwrap_used)]

use flyball_store::{Error, Expect, Op, Range, Store, testing::Chance};
use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

const TASKS: usize = 16;
const DIRECTORY: &str = "FLYBALL_KILLED_DIRECTORY";

/// The test starts itself again as the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_write_survives_kill_9() {
    if let Ok(path) = std::env::var(DIRECTORY) {
        return write(Path::new(&path)).await;
    }
    let mut chance = Chance::from_environment();
    println!("FLYBALL_SEED={}", chance.seed);
    let kills = std::env::var("FLYBALL_KILLS").map_or(20, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = HashMap::new();
    for round in 0..kills {
        kill(directory.path(), &mut chance, &mut acknowledged);
        let store = Store::open(directory.path())
            .await
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        for task in 0..TASKS {
            let last = acknowledged.get(&task).copied().unwrap_or_default();
            let found = check(&store, task, last).await;
            acknowledged.insert(task, found);
        }
        check_history(&store).await;
        store.close().await;
    }
    let steps: u64 = acknowledged.values().map(|(step, _)| step).sum();
    println!("{kills} kills, {steps} writes, 0 lost");
    assert!(steps > 0);
}

/// Starts the writer, kills it at some moment, and notes what it had acknowledged.
fn kill(path: &Path, chance: &mut Chance, acknowledged: &mut HashMap<usize, (u64, u64)>) {
    let (mut child, lines) = start(path);
    let is_early = chance.sometimes(5);
    if !is_early {
        assert_eq!(lines.recv_timeout(Duration::from_secs(60)).unwrap(), "opened");
    }
    // Sometimes so late that files of the journal are moved to tables and used again.
    let longest = if chance.sometimes(10) { 1_500_000 } else { 150_000 };
    let deadline = Instant::now() + Duration::from_micros(chance.below(longest) as u64);
    let mut notes = Vec::new();
    while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        notes.push(line);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    notes.extend(lines.iter());
    for note in notes.iter().filter(|note| *note != "opened") {
        let [task, step, revision] = note.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u64>>()[..]
        else {
            panic!("{note:?}")
        };
        acknowledged.insert(task as usize, (step, revision));
    }
}

fn start(path: &Path) -> (Child, Receiver<String>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "an_acknowledged_write_survives_kill_9",
        "--nocapture",
        "--quiet",
    ]);
    command.env(DIRECTORY, path).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8(line).unwrap();
            // Others write here too: the test harness at the beginning, and a line may be cut off at the end.
            if let Some(note) = line.strip_prefix("> ").and_then(|note| note.strip_suffix(" .")) {
                sender.send(note.to_owned()).unwrap();
            }
        }
    });
    (child, lines)
}

fn note(text: &str) {
    let line = format!("\n> {text} .\n");
    let mut output = std::io::stdout().lock();
    output.write_all(line.as_bytes()).and_then(|()| output.flush()).unwrap();
}

/// Writes with many tasks until the end, and notes each write after its acknowledgement.
async fn write(path: &Path) {
    let store = Store::open(path).await.unwrap();
    note("opened");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            let (mut step, _) = progress(&store, task).await;
            loop {
                step += 1;
                let revision = store.commit(ops(task, step)).await.unwrap().revision;
                note(&format!("{task} {step} {revision}"));
            }
        });
    }
    tasks.join_all().await;
}

/// Each step of a task counts itself, writes two keys alike or removes them, and writes a third, all in one commit.
fn ops(task: usize, step: u64) -> Vec<Op> {
    let pair = ["a", "b"].map(|name| format!("/pair/{task}/{name}"));
    let count = Op::put(count_key(task), step.to_string(), Expect::Anything);
    let bulk = vec![b'0' + (step % 10) as u8; (step * 7_919 % 8_192) as usize];
    let bulk = Op::put(format!("/bulk/{task}/{}", step % 20), bulk, Expect::Anything);
    let pair = pair.map(|key| match step % 5 {
        4 => Op::delete(key, Expect::Anything),
        _ => Op::put(key, step.to_string(), Expect::Anything),
    });
    [count].into_iter().chain(pair).chain([bulk]).collect()
}

fn count_key(task: usize) -> String {
    format!("/count/{task}")
}

/// Returns the last step of a task and its revision.
async fn progress(store: &Store, task: usize) -> (u64, u64) {
    let entry = store.get(count_key(task)).await.unwrap();
    entry.map_or((0, 0), |entry| {
        (std::str::from_utf8(&entry.value).unwrap().parse().unwrap(), entry.revision)
    })
}

/// Checks that the last acknowledged step of a task, or the one that was under way after it, is there as a whole.
async fn check(store: &Store, task: usize, acknowledged: (u64, u64)) -> (u64, u64) {
    let (step, revision) = progress(store, task).await;
    if step == acknowledged.0 {
        assert_eq!(revision, acknowledged.1, "task {task}, step {step}");
    } else {
        assert_eq!(step, acknowledged.0 + 1, "task {task}: at most one write was under way");
        assert!(revision > acknowledged.1);
    }
    for op in ops(task, step).into_iter().filter(|_| step > 0) {
        match op {
            Op::Put { key, value, .. } => {
                let entry = store.get(&key).await.unwrap().unwrap_or_else(|| panic!("{key:?} of step {step}"));
                assert_eq!((entry.value, entry.revision), (value.bytes, revision), "{key:?} of step {step}");
            }
            Op::Delete { key, .. } => assert_eq!(store.get(&key).await.unwrap(), None, "{key:?} of step {step}"),
            Op::Check { .. } => {}
        }
    }
    (step, revision)
}

/// Checks that a watcher can go on from the oldest revision and finds every later one, and what they lead to.
async fn check_history(store: &Store) {
    let oldest = match store.watch("", 0).await {
        Err(Error::Compacted { oldest, .. }) => oldest,
        watch => watch.map(|_| 0).unwrap(),
    };
    let mut watch = store.watch("", oldest).await.unwrap();
    let mut seen = oldest;
    while watch.revision() < store.revision() {
        let event = watch.next().await.unwrap().unwrap();
        assert!(event.revision == seen || event.revision == seen + 1, "{} after {seen}", event.revision);
        seen = event.revision;
    }
    assert_eq!(seen, store.revision());
    let page = store.range(Range { revision: Some(oldest), ..Range::default() }).await.unwrap();
    assert!(page.entries.iter().all(|entry| entry.revision <= oldest));
}
