//! Lists: pages, versions and selectors.

use crate::ask::Server;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn with_maps(names: &[&str]) -> Server {
    let server = Server::start().await;
    for name in names {
        server.post(MAPS, json!({"metadata": {"name": name, "labels": {"name": name}}})).await;
    }
    server
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_list_show_one_moment() {
    let server = with_maps(&["a", "b", "c", "d", "e"]).await;

    let first = server.get(&format!("{MAPS}?limit=2")).await.body;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    server.post(MAPS, json!({"metadata": {"name": "bb"}})).await;
    server.delete(&format!("{MAPS}/d"), json!(null)).await;

    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = server.get(&format!("{MAPS}?limit=2&continue={token}")).await.body;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = server.get(&format!("{MAPS}?limit=2&continue={token}")).await.body;
    assert_eq!((names(&last), &last["metadata"]["continue"]), (vec!["e"], &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_expired_says_how_to_go_on() {
    let store = flyball_store::Options { history_revisions: 4, ..Default::default() }.memory();
    let server = Server::over(store).await;
    for name in ["a", "b", "c"] {
        server.post(MAPS, json!({"metadata": {"name": name}})).await;
    }
    let first = server.get(&format!("{MAPS}?limit=1")).await.body;
    for name in ["d", "e", "f", "g", "h", "i"] {
        server.post(MAPS, json!({"metadata": {"name": name}})).await;
    }

    let token = first["metadata"]["continue"].as_str().unwrap();
    let expired = server.get(&format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!((expired.code, expired.body["reason"].as_str()), (410, Some("Expired")));

    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    let next = server.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((next.code, names(&next.body)), (200, vec!["b", "c"]));
}

#[tokio::test(start_paused = true)]
async fn a_list_at_a_version_shows_that_version_if_it_has_to_be_exact() {
    let server = with_maps(&["a"]).await;
    let then = server.get(MAPS).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    server.post(MAPS, json!({"metadata": {"name": "b"}})).await;

    let exact = server
        .get(&format!("{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"))
        .await
        .body;
    let limited = server.get(&format!("{MAPS}?resourceVersion={then}&limit=10")).await.body;
    let newer = server
        .get(&format!("{MAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan"))
        .await
        .body;

    assert_eq!((names(&exact), names(&limited)), (vec!["a"], vec!["a"]));
    assert_eq!(exact["metadata"]["resourceVersion"], then);
    assert_eq!(names(&newer), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_yet_to_come_is_waited_for_but_not_for_long() {
    let server = with_maps(&[]).await;

    let future = server.get(&format!("{MAPS}?resourceVersion=1000")).await;

    assert_eq!((future.code, future.body["reason"].as_str()), (504, Some("Timeout")));
    assert_eq!(future.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_by_labels_names_and_fields() {
    let server = with_maps(&["a", "b", "c"]).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    server.post(secrets, json!({"metadata": {"name": "plain"}})).await;
    server
        .post(secrets, json!({"metadata": {"name": "mine"}, "type": "example.dev/mine"}))
        .await;

    let labels = server.get(&format!("{MAPS}?labelSelector=name+in+(a,c)")).await.body;
    let name = server.get(&format!("{MAPS}?fieldSelector=metadata.name%3Db")).await.body;
    let others = server.get(&format!("{MAPS}?fieldSelector=metadata.name!%3Db")).await.body;
    let typed = server.get(&format!("{secrets}?fieldSelector=type%3Dexample.dev/mine")).await.body;
    let unknown = server.get(&format!("{MAPS}?fieldSelector=data%3Dx")).await;

    assert_eq!((names(&labels), names(&name)), (vec!["a", "c"], vec!["b"]));
    assert_eq!((names(&others), names(&typed)), (vec!["a", "c"], vec!["mine"]));
    assert_eq!(unknown.code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_limit_counts_what_was_selected() {
    let server = with_maps(&["a", "b", "c", "d"]).await;

    let page = server.get(&format!("{MAPS}?limit=1&labelSelector=name+in+(b,d)")).await.body;
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get(&format!("{MAPS}?limit=5&labelSelector=name+in+(b,d)&continue={token}"))
        .await
        .body;

    assert_eq!((names(&page), names(&rest)), (vec!["b"], vec!["d"]));
    assert_eq!(page["metadata"]["remainingItemCount"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_rare_label_is_found_in_few_reads() {
    let (store, ranges) = crate::slow_store::counting(&flyball_store::Store::memory());
    let server = Server::over(store).await;
    for index in 0..1000 {
        let labels = if index % 400 == 399 {
            json!({"rare": "yes"})
        } else {
            json!({})
        };
        let map = json!({"metadata": {"name": format!("map-{index:04}"), "labels": labels}});
        assert_eq!(server.post(MAPS, map).await.code, 201);
    }
    let before = ranges.load(std::sync::atomic::Ordering::SeqCst);

    let first = server.get(&format!("{MAPS}?limit=1&labelSelector=rare%3Dyes")).await.body;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = server
        .get(&format!("{MAPS}?limit=1&labelSelector=rare%3Dyes&continue={token}"))
        .await
        .body;

    let names = [&first, &second].map(|list| list["items"][0]["metadata"]["name"].as_str().unwrap());
    assert_eq!(names, ["map-0399", "map-0799"]);
    let counts = [&first, &second].map(|list| list["items"].as_array().unwrap().len());
    assert_eq!(counts, [1, 1]);
    let reads = ranges.load(std::sync::atomic::Ordering::SeqCst) - before;
    assert!(reads <= 2 * 10, "{reads} reads");
}

#[tokio::test(start_paused = true)]
async fn an_absent_field_has_its_zero_value() {
    let server = Server::start().await;
    for (name, spec) in [("open", json!({})), ("closed", json!({"unschedulable": true}))] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec});
        assert_eq!(server.post("/api/v1/nodes", node).await.code, 201);
    }

    for (selector, expected) in [("false", "open"), ("true", "closed")] {
        let list = server
            .get(&format!("/api/v1/nodes?fieldSelector=spec.unschedulable%3D{selector}"))
            .await
            .body;
        let names: Vec<&str> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, [expected]);
    }
}
