//! Watches see what happens, in order, once.

use crate::ask::Server;
use serde_json::json;
use std::sync::atomic::Ordering;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_what_there_is_and_goes_on_with_what_happens() {
    let server = Server::start().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;

    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;
    server.post(MAPS, json!({"metadata": {"name": "b"}})).await;
    server
        .put(&format!("{MAPS}/a"), json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))
        .await;
    let deleted = server.delete(&format!("{MAPS}/b"), json!(null)).await;
    assert_eq!(deleted.code, 200);

    for expected in ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"] {
        assert_eq!(watch.words().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_a_selector_is_deleted_for_its_watchers() {
    let server = Server::start().await;
    let path = format!("{MAPS}?watch=true&labelSelector=app%3Dweb");
    let mut watch = server.watch(&path).await;
    let labelled = |value: &str| json!({"metadata": {"name": "a", "labels": {"app": value}}});

    server.post(MAPS, labelled("other")).await;
    server.put(&format!("{MAPS}/a"), labelled("web")).await;
    let left = server.put(&format!("{MAPS}/a"), labelled("other")).await;
    server.put(&format!("{MAPS}/a"), labelled("third")).await;
    server.post(MAPS, json!({"metadata": {"name": "end", "labels": {"app": "web"}}})).await;

    assert_eq!(watch.words().await, "ADDED a");
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["labels"]["app"], "web");
    assert_eq!(event["object"]["metadata"]["resourceVersion"], left.body["metadata"]["resourceVersion"]);
    assert_eq!(watch.words().await, "ADDED end");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lists_first_says_when_it_has() {
    let server = Server::start().await;
    server.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3"
    );

    let mut watch = server.watch(&path).await;

    assert_eq!(watch.words().await, "ADDED a");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(watch.words().await, "BOOKMARK -");
    assert_eq!(watch.words().await, "end");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_too_long_ago_is_told_so_in_an_event() {
    let store = flyball_store::Options { history_revisions: 4, ..Default::default() }.memory();
    let server = Server::over(store).await;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        server.post(MAPS, json!({"metadata": {"name": name}})).await;
    }

    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion=1")).await;

    let event = watch.next().await.unwrap();
    assert_eq!((event["type"].as_str(), event["object"]["code"].as_i64()), (Some("ERROR"), Some(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(watch.words().await, "end");
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_more_objects_than_are_read_together() {
    let (store, ranges) = crate::slow_store::counting(&flyball_store::Store::memory());
    let server = Server::over(store).await;
    for index in 0..2100 {
        server.post(MAPS, json!({"metadata": {"name": format!("map-{index:04}")}})).await;
    }
    let before = ranges.load(Ordering::SeqCst);
    let reads = || ranges.load(Ordering::SeqCst) - before;

    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;
    assert_eq!((watch.words().await.as_str(), reads()), ("ADDED map-0000", 1));
    // What happens while the state is sent comes after it.
    server.delete(&format!("{MAPS}/map-2000"), json!(null)).await;

    for index in 1..2100 {
        assert_eq!(watch.words().await, format!("ADDED map-{index:04}"));
    }
    assert_eq!((watch.words().await.as_str(), reads()), ("DELETED map-2000", 3));
}

#[tokio::test(start_paused = true)]
async fn a_watch_by_field_sees_objects_come_and_go() {
    let server = Server::start().await;
    let node = |unschedulable: bool| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": unschedulable}});
    let mut watch = server.watch("/api/v1/nodes?watch=true&fieldSelector=spec.unschedulable%3Dfalse").await;

    server.post("/api/v1/nodes", node(false)).await;
    server.put("/api/v1/nodes/n", node(true)).await;
    server.put("/api/v1/nodes/n", node(false)).await;

    for expected in ["ADDED n", "DELETED n", "ADDED n"] {
        assert_eq!(watch.words().await, expected);
    }
}
