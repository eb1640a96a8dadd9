//! What befalls two hundred Gardens during a soak, and what must have become of them when it rests.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::faults::next;
use crate::garden::{GARDENS, MAPS, OURS, garden};
use crate::scenario::World;

const COUNT: u64 = 200;
/// A change every so often.
const PACE: Duration = Duration::from_millis(25);
/// How long the server may be away, and how long everything may take to come right.
const WITHIN: Duration = Duration::from_secs(120);

/// The Gardens, and what they should be.
pub struct Load {
    world: World,
    random: AtomicU64,
    wanted: BTreeMap<String, u64>,
    /// How much was changed so far.
    pub changes: u64,
}

impl Load {
    /// Creates the Gardens.
    pub async fn start(client: kube::Client, seed: u64) -> Result<Load, String> {
        let (world, random) = (World::new(client), AtomicU64::new(!seed));
        let mut load = Load { world, random, wanted: BTreeMap::new(), changes: 0 };
        for number in 0..COUNT {
            let name = format!("garden-{number:03}");
            load.world.create(GARDENS, &garden(&name, number)).await?;
            load.wanted.insert(name, number);
        }
        load.settles().await?;
        Ok(load)
    }

    /// Changes Gardens and their children for so long.
    pub async fn press(&mut self, time: Duration) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < time {
            self.change().await?;
            tokio::time::sleep(PACE).await;
        }
        Ok(())
    }

    async fn change(&mut self) -> Result<(), String> {
        let drawn = next(&self.random);
        let name = format!("garden-{:03}", drawn % COUNT);
        let child = format!("{MAPS}/{name}");
        self.changes += 1;
        match (drawn >> 32) % 10 {
            0 => {
                let tampered = json!({"data": {"plants": "tampered"}});
                patiently(async || self.gone_or(self.world.merge(&child, &tampered).await.map(drop))).await
            }
            1 => patiently(async || self.gone_or(self.world.delete(&child).await)).await,
            _ => {
                let plants = drawn >> 40;
                let patch = json!({"spec": {"plants": plants}});
                let path = format!("{GARDENS}/{name}");
                patiently(async || self.world.merge(&path, &patch).await.map(drop)).await?;
                self.wanted.insert(name, plants);
                Ok(())
            }
        }
    }

    /// A child may be away already.
    fn gone_or(&self, done: Result<(), String>) -> Result<(), String> {
        match done {
            Err(message) if message.contains("not found") => Ok(()),
            done => done,
        }
    }

    /// Waits until every Garden and its child is as it should be, and says how long it took.
    pub async fn settles(&self) -> Result<Duration, String> {
        let start = Instant::now();
        patiently(async || match self.wrong().await? {
            None => Ok(()),
            Some(wrong) => Err(format!("missed: {wrong}")),
        })
        .await?;
        Ok(start.elapsed())
    }

    async fn wrong(&self) -> Result<Option<String>, String> {
        let gardens = self.world.get(GARDENS).await?.unwrap_or_default();
        let children = self.world.get(&format!("{MAPS}?{OURS}")).await?.unwrap_or_default();
        let (gardens, children) = (by_name(&gardens), by_name(&children));
        let wrong = self.wanted.iter().find(|(name, plants)| {
            let status = gardens.get(name.as_str()).map(|garden| &garden["status"]["plants"]);
            let child = children.get(name.as_str()).map(|child| &child["data"]["plants"]);
            status != Some(&json!(plants)) || child != Some(&json!(plants.to_string()))
        });
        Ok(wrong.map(|(name, plants)| format!("{name} should have {plants} plants")))
    }
}

fn by_name(list: &Value) -> BTreeMap<&str, &Value> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| Some((item["metadata"]["name"].as_str()?, item))).collect()
}

/// Tries again while the server is away.
async fn patiently(attempt: impl AsyncFn() -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match attempt().await {
            Err(_) if start.elapsed() < WITHIN => tokio::time::sleep(Duration::from_millis(100)).await,
            done => return done,
        }
    }
}
