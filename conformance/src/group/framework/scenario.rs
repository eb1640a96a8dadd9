//! Two hundred Gardens from their creation to their end, with everything that befalls them between.

use std::collections::BTreeMap;

use flyball::Running;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::garden::{GARDENS, MAPS, OURS, TICKETS, garden, operator};
use crate::report::Finding;
use crate::scenario::World;

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gardens.conformance.flyball.dev";
const COUNT: u64 = 200;
/// How many requests of the scenario are under way at once.
const AT_ONCE: usize = 16;

/// A step's verdict: nothing, or what is wrong.
type Outcome = Result<(), String>;

/// Runs every step on the cluster behind `client`, adding findings that begin with `place`.
pub async fn run(place: &str, client: kube::Client, findings: &mut Vec<Finding>) {
    let world = World::new(client.clone());
    let mut step = |case: &str, outcome: Outcome| findings.push(Finding::check(format!("{place}: {case}"), outcome));
    step("children that nobody owns are there before", orphans(&world).await);
    let running = match operator().start(client.clone()).await {
        Ok(running) => running,
        Err(error) => return step("starts", Err(error.to_string())),
    };
    step("installs its kind", installed(&world).await);
    step("reconciles 200 objects", reconciles(&world).await);
    step("leaves to its managers what is not its status", leaves_to_managers(&world).await);
    step("adopts what was there", adopts(&world).await);
    step("lists the metadata of no objects", lists_nothing(&running));
    step("corrects drift", corrects_drift(&world).await);
    step("makes again what was deleted", makes_again(&world).await);
    step("writes nothing when nothing changes", is_calm(&world).await);
    running.stop().await;
    step("is away while much happens", happens(&world).await);
    match operator().start(client).await {
        Err(error) => step("starts again", Err(error.to_string())),
        Ok(running) => {
            step("catches up after being away", catches_up(&world).await);
            step("cleans up, and its children go", goes(&world).await);
            running.stop().await;
        }
    }
}

fn name(number: u64) -> String {
    format!("garden-{number:03}")
}

/// Does the same to many, some at once, and stops at the first failure.
async fn each<F>(numbers: impl IntoIterator<Item = u64>, action: impl Fn(u64) -> F) -> Outcome
where
    F: Future<Output = Outcome>,
{
    stream::iter(numbers).map(action).buffer_unordered(AT_ONCE).try_collect().await
}

/// The first twenty children exist before their Gardens do, and say something else.
async fn orphans(world: &World) -> Outcome {
    each(0..20, async |number| {
        let map = json!({"metadata": {"name": name(number)}, "data": {"plants": "none", "kept": "yes"}});
        world.create(MAPS, &map).await.map(drop)
    })
    .await
}

async fn installed(world: &World) -> Outcome {
    let established = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array();
        let is = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        conditions.is_some_and(|conditions| conditions.iter().any(is))
    };
    world.until(CRD, established).await.map(drop)
}

async fn reconciles(world: &World) -> Outcome {
    each(0..COUNT, async |number| {
        world.create(GARDENS, &garden(&name(number), number)).await.map(drop)
    })
    .await?;
    settled(world, |number| number).await
}

/// Every Garden, its child and its ticket are as they should be.
async fn settled(world: &World, plants: impl Fn(u64) -> u64) -> Outcome {
    let count = |list: &Value| list["items"].as_array().map_or(0, Vec::len) as u64;
    let all = |list: &Value, right: &dyn Fn(&Value, u64) -> bool| {
        let items: BTreeMap<&str, &Value> = by_name(list);
        (0..COUNT).all(|number| items.get(&*name(number)).is_some_and(|item| right(item, plants(number))))
    };
    let status = |garden: &Value, plants: u64| garden["status"]["plants"] == plants;
    world.until(GARDENS, |list| all(list, &status)).await?;
    let child =
        |map: &Value, plants: u64| map["data"]["plants"].as_str().is_some_and(|text| text.parse() == Ok(plants));
    world.until(&format!("{MAPS}?{OURS}"), |list| all(list, &child)).await?;
    world.until(&format!("{TICKETS}?{OURS}"), |list| count(list) == COUNT).await.map(drop)
}

fn by_name(list: &Value) -> BTreeMap<&str, &Value> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| Some((item["metadata"]["name"].as_str()?, item))).collect()
}

/// A status is sent without labels, finalizers and spec: they stay, and so does who set them.
async fn leaves_to_managers(world: &World) -> Outcome {
    let path = format!("{GARDENS}/{}", name(150));
    for plants in [1150, 150] {
        let change = json!({"metadata": {"labels": {"bed": "north"}}, "spec": {"plants": plants}});
        world.merge(&path, &change).await?;
        let garden = world.until(&path, |garden| garden["status"]["plants"] == plants).await?;
        let entries = garden["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let of_status = |entry: &&Value| entry["subresource"] == "status";
        let (status, rest): (Vec<_>, Vec<_>) = entries.iter().partition(of_status);
        let owned = |entries: &[&Value], field: &str| {
            entries
                .iter()
                .any(|entry| entry["fieldsV1"].pointer(field).is_some_and(|owned| !owned.is_null()))
        };
        let fields = [
            "/f:metadata/f:labels/f:bed",
            "/f:metadata/f:finalizers",
            "/f:spec/f:plants",
        ];
        let lost = fields.into_iter().find(|field| !owned(&rest, field));
        if let Some(field) = lost.or((!owned(&status, "/f:status/f:plants")).then_some("/f:status/f:plants")) {
            return Err(format!("nobody manages {field} any more: {garden}"));
        }
        if garden["metadata"]["labels"]["bed"] != "north" || garden["spec"]["plants"] != plants {
            return Err(format!("more was written than the status: {garden}"));
        }
    }
    Ok(())
}

async fn adopts(world: &World) -> Outcome {
    let gardens = world.get(GARDENS).await?.unwrap_or_default();
    let gardens = by_name(&gardens);
    let maps = world.get(&format!("{MAPS}?{OURS}")).await?.unwrap_or_default();
    for (name, map) in by_name(&maps) {
        let owner = &map["metadata"]["ownerReferences"][0];
        let garden = gardens.get(name).ok_or(format!("child {name} has no Garden"))?;
        if owner["uid"] != garden["metadata"]["uid"] || owner["controller"] != true {
            return Err(format!("the owner of child {name} is {owner}"));
        }
        if name < "garden-020" && map["data"]["kept"] != "yes" {
            return Err(format!("what others wrote into child {name} is gone: {}", map["data"]));
        }
    }
    Ok(())
}

fn lists_nothing(running: &Running) -> Outcome {
    let watches = running.cache().watches();
    let nothing = watches
        .iter()
        .find(|watch| watch.kind == "ResourceQuota")
        .ok_or("ResourceQuotas are not watched")?;
    match (&nothing.last_error, nothing.synced) {
        (None, true) => Ok(()),
        (error, synced) => Err(format!("listed: {synced}; last error: {error:?}")),
    }
}

async fn corrects_drift(world: &World) -> Outcome {
    let drift = json!({"data": {"plants": "tampered"}});
    each(20..60, async |number| {
        world.merge(&format!("{MAPS}/{}", name(number)), &drift).await.map(drop)
    })
    .await?;
    settled(world, |number| number).await
}

async fn makes_again(world: &World) -> Outcome {
    each(60..100, async |number| world.delete(&format!("{MAPS}/{}", name(number))).await).await?;
    settled(world, |number| number).await
}

/// Versions do not move for a second once everything is as it should be.
async fn is_calm(world: &World) -> Outcome {
    let versions = async || -> Result<Vec<Value>, String> {
        let (gardens, maps) = (world.get(GARDENS).await?, world.get(&format!("{MAPS}?{OURS}")).await?);
        let lists = [gardens.unwrap_or_default(), maps.unwrap_or_default()];
        let version = |item: &&Value| item["metadata"]["resourceVersion"].clone();
        Ok(lists
            .iter()
            .flat_map(|list| by_name(list).into_values().map(|item| version(&item)).collect::<Vec<_>>())
            .collect())
    };
    let before = versions().await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    if versions().await? == before {
        Ok(())
    } else {
        Err("objects were written although nothing had changed".into())
    }
}

/// Some are changed, some deleted, some children too.
async fn happens(world: &World) -> Outcome {
    each(0..50, async |number| {
        let changed = json!({"spec": {"plants": number + 1000}});
        world.merge(&format!("{GARDENS}/{}", name(number)), &changed).await.map(drop)
    })
    .await?;
    each(100..120, async |number| world.delete(&format!("{MAPS}/{}", name(number))).await).await?;
    each(190..COUNT, async |number| world.delete(&format!("{GARDENS}/{}", name(number))).await).await?;
    let held = world.get(&format!("{GARDENS}/{}", name(199))).await?.unwrap_or_default();
    if held["metadata"]["deletionTimestamp"].is_null() {
        return Err(format!("it is not held by its finalizer: {held}"));
    }
    Ok(())
}

async fn catches_up(world: &World) -> Outcome {
    each(190..COUNT, async |number| world.until_gone(&format!("{GARDENS}/{}", name(number))).await).await?;
    each(190..COUNT, async |number| world.until_gone(&format!("{MAPS}/{}", name(number))).await).await?;
    each(190..COUNT, async |number| {
        world.create(GARDENS, &garden(&name(number), number)).await.map(drop)
    })
    .await?;
    settled(world, |number| if number < 50 { number + 1000 } else { number }).await
}

async fn goes(world: &World) -> Outcome {
    each(0..COUNT, async |number| world.delete(&format!("{GARDENS}/{}", name(number))).await).await?;
    world.until_gone(GARDENS).await?;
    world.until_gone(&format!("{TICKETS}?{OURS}")).await?;
    world.until_gone(&format!("{MAPS}?{OURS}")).await
}
