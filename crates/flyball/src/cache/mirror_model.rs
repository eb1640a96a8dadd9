//! A mirror beside a server that is too simple to be wrong: others write, this process writes, objects leave the selection and
//! return, answers and watch events come late, lists replace watches. A failure prints its seed.

use super::{Change, Mirror, Subscriber, WatchIndex};
use crate::cache::{kind::Kind, object::Object};
use crate::engine::work::WorkQueue;
use crate::{Key, Selection};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Expression;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex},
};

const WATCH: WatchIndex = WatchIndex(0);

/// uid and version of what is selected, by name.
type World = BTreeMap<u64, (u64, u64)>;

/// One version of an object.
#[derive(Clone, Copy, Debug)]
struct Version {
    name: u64,
    uid: u64,
    version: u64,
    selected: bool,
}

struct Game {
    random: fastrand::Rng,
    version: u64,
    /// What is there, selected or not.
    world: BTreeMap<u64, Version>,
    /// What the watch has yet to tell; what it tells of as deleted is not selected.
    events: VecDeque<Version>,
    /// Answers to this process's own writes that it has not seen yet.
    answers: Vec<Answer>,
    /// The last version that this process saw answered, or `None` for deleted, by uid.
    wrote: HashMap<u64, Option<Version>>,
    /// The last version at which an object was deleted or left the selection, by uid.
    left: HashMap<u64, u64>,
    mirror: Mirror,
    notified: Arc<Mutex<World>>,
    _queue: Arc<WorkQueue>,
}

enum Answer {
    Object(Version),
    Gone { name: u64, uid: u64 },
}

fn object(Version { name, uid, version, selected }: Version) -> Object {
    let metadata = format!(r#""name":"{name}","uid":"{uid}","resourceVersion":"{version}""#);
    Object::parse(format!(r#"{{"metadata":{{{metadata},"labels":{{"selected":"{selected}"}}}}}}"#)).unwrap()
}

fn mirror() -> Mirror {
    let selection = Selection::default().labels(Expression::Equal("selected".into(), "true".into()));
    Mirror::new(Kind { selection, ..Kind::of::<ConfigMap>() }, &[], "model".into())
}

fn numbers(object: &Object) -> (u64, (u64, u64)) {
    (object.key.name().parse().unwrap(), (object.uid.parse().unwrap(), object.version))
}

impl Game {
    fn new(seed: u64) -> Game {
        let mirror = mirror();
        let (notified, queue) = (Arc::new(Mutex::new(World::new())), Arc::new(WorkQueue::default()));
        let heard = notified.clone();
        let tell = move |_: &Mirror, change: &Change, _: &WorkQueue| {
            let mut world = heard.lock().unwrap();
            let before = change.old.as_deref().map(numbers);
            let known = before.and_then(|(name, _)| world.remove_entry(&name));
            assert_eq!(known, before, "a change begins where the last one ended");
            world.extend(change.new.as_deref().map(numbers));
        };
        mirror.subscribe(Subscriber { queue: Arc::downgrade(&queue), tell: Arc::new(tell) });
        Game {
            random: fastrand::Rng::with_seed(seed),
            version: 0,
            world: BTreeMap::new(),
            events: VecDeque::new(),
            answers: Vec::new(),
            wrote: HashMap::new(),
            left: HashMap::new(),
            mirror,
            notified,
            _queue: queue,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.u64(..bound)
    }

    /// Somebody creates, changes or deletes something; says what the API server answers.
    fn write(&mut self) -> Answer {
        let name = self.below(4);
        self.version += 1;
        let (version, before) = (self.version, self.world.get(&name).copied());
        let after = Version {
            name,
            uid: before.map_or(version, |before| before.uid),
            version,
            selected: self.below(3) > 0,
        };
        let was_selected = before.is_some_and(|before| before.selected);
        let deleted = before.is_some() && self.below(3) == 0;
        if was_selected && (deleted || !after.selected) {
            self.left.insert(after.uid, version);
            self.events.push_back(Version { selected: false, ..after });
        } else if after.selected && !deleted {
            self.events.push_back(after);
        }
        if deleted {
            self.world.remove(&name);
            return Answer::Gone { name, uid: after.uid };
        }
        self.world.insert(name, after);
        Answer::Object(after)
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Object(version) => {
                self.mirror.written(object(version));
                let wrote = self.wrote.entry(version.uid).or_insert(Some(version));
                *wrote = wrote.map(|before| {
                    if before.version > version.version {
                        before
                    } else {
                        version
                    }
                });
            }
            Answer::Gone { name, uid } => {
                self.mirror.removed(&Key::cluster(name.to_string()), &uid.to_string());
                self.wrote.insert(uid, None);
            }
        }
    }

    fn watch(&mut self) {
        match self.events.pop_front() {
            Some(version) if version.selected => self.mirror.changed(WATCH, object(version)),
            // As it was when it was last selected, with the version of now.
            Some(version) => self.mirror.deleted(WATCH, &object(Version { selected: true, ..version })),
            None => self.mirror.bookmarked(WATCH, self.version),
        }
    }

    /// A list of what is there now, during which this process may write, and the watch begins anew after it.
    fn list(&mut self) {
        self.mirror.list_began(WATCH);
        let (listed, version) = (self.world.clone(), self.version);
        for listed in listed.into_values().filter(|listed| listed.selected) {
            if self.below(4) == 0 {
                let answer = self.write();
                self.answered(answer);
            }
            self.mirror.listed(WATCH, object(listed));
        }
        self.mirror.list_ended(WATCH, version);
        self.events.retain(|event| event.version > version);
    }

    fn step(&mut self) {
        match self.below(10) {
            0..=1 => drop(self.write()),
            2..=3 => {
                let answer = self.write();
                self.answers.push(answer);
            }
            4..=5 if !self.answers.is_empty() => {
                let index = self.below(self.answers.len() as u64) as usize;
                let answer = self.answers.swap_remove(index);
                self.answered(answer);
            }
            9 if self.below(4) == 0 => self.list(),
            _ => self.watch(),
        }
    }

    /// No read is older than what this process has seen answered to it.
    fn check(&self, seed: u64) {
        let read: World = self.mirror.list(None).iter().map(|object| numbers(object)).collect();
        assert_eq!(read, *self.notified.lock().unwrap(), "seed {seed}: a change was not reported");
        for (name, (uid, version)) in &read {
            match self.wrote.get(uid) {
                Some(None) => panic!("seed {seed}: {name} is read although this process deleted it"),
                Some(Some(wrote)) => {
                    let wrote = wrote.version;
                    assert!(*version >= wrote, "seed {seed}: {name} is read at {version}, written at {wrote}")
                }
                None => {}
            }
        }
        for wrote in self.wrote.values().flatten().filter(|wrote| wrote.selected) {
            let there = read.values().any(|(read, _)| *read == wrote.uid);
            let left = self.left.get(&wrote.uid).is_some_and(|left| *left > wrote.version);
            let Version { uid, version, .. } = wrote;
            assert!(there || left, "seed {seed}: {uid}, written at {version}, is not read");
        }
    }
}

#[test]
fn reads_are_never_older_than_own_writes_and_end_where_the_server_does() {
    for seed in 0..200 {
        let mut game = Game::new(seed);
        for _ in 0..200 {
            game.step();
            game.check(seed);
        }
        while !game.events.is_empty() {
            game.watch();
        }
        for answer in std::mem::take(&mut game.answers) {
            game.answered(answer);
        }
        game.check(seed);
        let selected = game.world.values().filter(|version| version.selected);
        let selected: World = selected.map(|version| (version.name, (version.uid, version.version))).collect();
        assert_eq!(*game.notified.lock().unwrap(), selected, "seed {seed}");
    }
}

#[test]
fn a_server_that_selects_what_we_would_not_is_believed() {
    let (mirror, key) = (mirror(), Key::cluster("1"));
    let version = |version, selected| Version { name: 1, uid: 1, version, selected };
    mirror.changed(WATCH, object(version(1, true)));
    mirror.written(object(version(2, false)));
    assert!(mirror.get(&key).is_none());
    mirror.changed(WATCH, object(version(2, true)));
    assert_eq!(mirror.get(&key).map(|object| object.version), Some(2));
}

#[test]
fn deletions_that_no_watch_tells_of_are_not_kept_for_ever() {
    let mirror = mirror();
    for name in 0..100_000 {
        mirror.removed(&Key::cluster(name.to_string()), &name.to_string());
    }
    let kept = mirror.lock().progress[0].deletions.len();
    assert!(kept <= 2_000, "{kept} deletions are kept");
}
