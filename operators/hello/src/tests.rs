//! What the README promises of this program, on a cluster in the test's process.

use super::*;
use flyball_test::Cluster;

#[tokio::test(start_paused = true)]
async fn a_greeting_owns_its_config_map() {
    let cluster = Cluster::with(operator()).await;

    cluster.create(Greeting::new("ada", GreetingSpec { who: "Ada".into() })).await;
    let map = cluster.until("ada", |map: &ConfigMap| map.data.is_some()).await;
    assert_eq!(map.data.unwrap()["greeting"], "hello Ada");

    cluster.delete::<Greeting>("ada").await;
    cluster.until_gone::<ConfigMap>("ada").await;
}
