//! A mirror beside a server that is too simple to be wrong: others write, this process writes, answers and watch events come
//! late, lists replace watches. A failure prints its seed.

use super::{Change, Mirror, Part, Subscriber};
use crate::{Key, kind::Kind, object::Object, work::WorkQueue};
use k8s_openapi::api::core::v1::ConfigMap;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex},
};

const PART: Part = Part(0);

/// uid and version of what is there, by name.
type World = BTreeMap<u64, (u64, u64)>;

struct Game {
    random: u64,
    version: u64,
    world: World,
    /// What the watch has yet to tell: name, uid, version, whether it is there.
    events: VecDeque<(u64, u64, u64, bool)>,
    /// Answers to this process's own writes that it has not seen yet.
    answers: Vec<Answer>,
    /// The last version that this process saw answered, or `None` for deleted, by uid.
    wrote: HashMap<u64, Option<u64>>,
    deleted_at: HashMap<u64, u64>,
    mirror: Mirror,
    told: Arc<Mutex<World>>,
    _queue: Arc<WorkQueue>,
}

enum Answer {
    Object { name: u64, uid: u64, version: u64 },
    Gone { name: u64, uid: u64 },
}

fn object(name: u64, uid: u64, version: u64) -> Object {
    Object::parse(format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    ))
    .unwrap()
}

fn numbers(object: &Object) -> (u64, (u64, u64)) {
    (object.key.name().parse().unwrap(), (object.uid.parse().unwrap(), object.version))
}

impl Game {
    fn new(seed: u64) -> Game {
        let mirror = Mirror::new(Kind::of::<ConfigMap>(), &[]);
        let (told, queue) = (Arc::new(Mutex::new(World::new())), Arc::new(WorkQueue::default()));
        let heard = told.clone();
        let tell = move |_: &Mirror, change: &Change, _: &WorkQueue| {
            let mut world = heard.lock().unwrap();
            let before = change.old.as_deref().map(numbers);
            let known = before.and_then(|(name, _)| world.remove_entry(&name));
            assert_eq!(known, before, "a change begins where the last one ended");
            world.extend(change.new.as_deref().map(numbers));
        };
        mirror.subscribe(Subscriber { queue: Arc::downgrade(&queue), tell: Arc::new(tell) });
        Game {
            random: seed,
            version: 0,
            world: World::new(),
            events: VecDeque::new(),
            answers: Vec::new(),
            wrote: HashMap::new(),
            deleted_at: HashMap::new(),
            mirror,
            told,
            _queue: queue,
        }
    }

    /// splitmix64
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Somebody creates, changes or deletes something; says what the API server answers.
    fn write(&mut self) -> Answer {
        let name = self.below(4);
        self.version += 1;
        let version = self.version;
        let Some((uid, _)) = self.world.get(&name).copied() else {
            self.world.insert(name, (version, version));
            self.events.push_back((name, version, version, true));
            return Answer::Object { name, uid: version, version };
        };
        if self.below(3) == 0 {
            self.world.remove(&name);
            self.deleted_at.insert(uid, version);
            self.events.push_back((name, uid, version, false));
            return Answer::Gone { name, uid };
        }
        self.world.insert(name, (uid, version));
        self.events.push_back((name, uid, version, true));
        Answer::Object { name, uid, version }
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Object { name, uid, version } => {
                self.mirror.written(object(name, uid, version));
                let wrote = self.wrote.entry(uid).or_insert(Some(0));
                *wrote = wrote.map(|before| before.max(version));
            }
            Answer::Gone { name, uid } => {
                self.mirror.removed(&Key::cluster(name.to_string()), &uid.to_string());
                self.wrote.insert(uid, None);
            }
        }
    }

    fn watch(&mut self) {
        match self.events.pop_front() {
            Some((name, uid, version, true)) => self.mirror.changed(PART, object(name, uid, version)),
            Some((name, uid, version, false)) => self.mirror.deleted(PART, &object(name, uid, version)),
            None => self.mirror.bookmarked(PART, self.version),
        }
    }

    /// A list of what is there now, during which this process may write, and the watch begins anew after it.
    fn list(&mut self) {
        self.mirror.list_began(PART);
        let (listed, version) = (self.world.clone(), self.version);
        for (name, (uid, version)) in listed {
            if self.below(4) == 0 {
                let answer = self.write();
                self.answered(answer);
            }
            self.mirror.listed(PART, object(name, uid, version));
        }
        self.mirror.list_ended(PART, version);
        self.events.retain(|event| event.2 > version);
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
        assert_eq!(read, *self.told.lock().unwrap(), "seed {seed}: a change was not told");
        for (name, (uid, version)) in &read {
            match self.wrote.get(uid) {
                Some(None) => panic!("seed {seed}: {name} is read although this process deleted it"),
                Some(Some(wrote)) => {
                    assert!(version >= wrote, "seed {seed}: {name} is read at {version}, written at {wrote}")
                }
                None => {}
            }
        }
        for (uid, wrote) in self.wrote.iter().filter_map(|(uid, wrote)| Some((uid, (*wrote)?))) {
            let there = read.values().any(|(read, _)| read == uid);
            assert!(
                there || self.deleted_at.contains_key(uid),
                "seed {seed}: {uid}, written at {wrote}, is not read"
            );
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
        assert_eq!(*game.told.lock().unwrap(), game.world, "seed {seed}");
    }
}
