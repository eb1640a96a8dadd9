//! The behaviour that all backends share.
#![allow(clippy::unwrap_used)]

use flyball_store::{Error, Event, Expect, Health, Op, Options, Range, Store, Value, Watch};
use futures::FutureExt;
use std::sync::Arc;

/// Runs a test on each kind of store, empty at first.
async fn on_each(options: Options, test: impl AsyncFn(Store)) {
    test(options.memory()).await;
    let directory = tempfile::tempdir().unwrap();
    let store = options.open(directory.path()).await.unwrap();
    test(store.clone()).await;
    store.close().await;
}

async fn put(store: &Store, key: &str, value: &str) -> u64 {
    let put = Op::put(key.to_owned(), value.to_owned(), Expect::Anything);
    store.commit(vec![put]).await.unwrap().revision
}

async fn delete(store: &Store, key: &str) -> u64 {
    store.commit(vec![Op::delete(key.to_owned(), Expect::Anything)]).await.unwrap().revision
}

async fn keys(store: &Store, range: Range) -> Vec<String> {
    let page = store.range(range).await.unwrap();
    page.entries
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.key).into_owned())
        .collect()
}

/// Takes events, after which there is no other.
async fn taken(watch: &mut Watch, count: usize) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    while events.len() < count {
        events.push(watch.next().await.unwrap().unwrap());
    }
    assert!(watch.next().now_or_never().is_none());
    events
}

async fn seen(watch: &mut Watch, count: usize) -> Vec<(u64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let events = taken(watch, count).await;
    events
        .iter()
        .map(|event| (event.revision, text(&event.key), event.value.as_deref().map(text)))
        .collect()
}

#[tokio::test]
async fn a_commit_takes_the_next_revision_and_is_read_back() {
    on_each(Options::default(), async |store| {
        assert_eq!((store.revision(), store.get("/a").await.unwrap()), (0, None));
        assert_eq!(put(&store, "/a", "one").await, 1);
        assert_eq!(put(&store, "/a", "two").await, 2);
        let entry = store.get("/a").await.unwrap().unwrap();
        assert_eq!((&entry.value[..], entry.revision, entry.created), (&b"two"[..], 2, 1));
        assert_eq!(store.revision(), 2);
    })
    .await;
}

#[tokio::test]
async fn operations_of_one_commit_share_its_revision() {
    on_each(Options::default(), async |store| {
        let ops = ["/a", "/b"].map(|key| Op::put(key, "v", Expect::Absent)).to_vec();
        let committed = store.commit(ops).await.unwrap();
        let revisions: Vec<_> = committed.entries.iter().flatten().map(|entry| entry.revision).collect();
        assert_eq!((committed.revision, revisions), (1, vec![1, 1]));
    })
    .await;
}

#[tokio::test]
async fn one_unmet_expectation_refuses_the_whole_commit() {
    on_each(Options::default(), async |store| {
        put(&store, "/a", "one").await;
        let ops = vec![
            Op::put("/b", "v", Expect::Absent),
            Op::put("/a", "two", Expect::Revision(7)),
        ];
        let error = store.commit(ops).await.unwrap_err();
        assert_eq!(error.to_string(), "commit /a: expected at revision 7, but is at revision 1");
        let Error::Conflict { current: Some(current), .. } = error else {
            panic!("{error}")
        };
        assert_eq!(current.value, "one");
        assert_eq!((store.get("/b").await.unwrap(), store.revision()), (None, 1));

        let error = store.commit(vec![Op::put("/a", "two", Expect::Absent)]).await.unwrap_err();
        assert_eq!(error.to_string(), "commit /a: expected to be absent, but is at revision 1");
        let error = store.commit(vec![Op::delete("/c", Expect::Revision(1))]).await.unwrap_err();
        assert_eq!(error.to_string(), "commit /c: expected at revision 1, but is absent");
    })
    .await;
}

#[tokio::test]
async fn a_commit_that_no_state_could_allow_is_refused() {
    on_each(Options::default(), async |store| {
        let ops = vec![
            Op::put("/a", "one", Expect::Anything),
            Op::delete("/a", Expect::Anything),
        ];
        assert_eq!(store.commit(ops).await.unwrap_err().to_string(), "commit /a: the key is given twice");
        let outside = store
            .commit(vec![Op::put("/a", Value::stamped("abc", 4), Expect::Anything)])
            .await
            .unwrap_err();
        assert_eq!(outside.to_string(), "commit /a: the revision belongs at byte 4 of a value of 3");
        assert!(
            store
                .commit(vec![Op::put("/a", Value::stamped("abc", 3), Expect::Anything)])
                .await
                .is_ok()
        );
    })
    .await;
}

#[tokio::test]
async fn a_check_makes_a_commit_depend_on_a_key_that_it_does_not_write() {
    on_each(Options::default(), async |store| {
        put(&store, "/namespace", "one").await;
        let ops = |revision| {
            vec![
                Op::check("/namespace", Expect::Revision(revision)),
                Op::check("/quota", Expect::Absent),
                Op::put("/pod", "v", Expect::Anything),
            ]
        };
        let mut watch = store.watch("/", 1).await.unwrap();
        let committed = store.commit(ops(1)).await.unwrap();
        let entries: Vec<_> = committed.entries.iter().map(Option::is_some).collect();
        assert_eq!((committed.revision, entries), (2, vec![false, false, true]));
        assert_eq!(seen(&mut watch, 1).await, [(2, "/pod".into(), Some("v".into()))]);
        assert_eq!(store.get("/namespace").await.unwrap().unwrap().revision, 1);

        put(&store, "/namespace", "two").await;
        let error = store.commit(ops(1)).await.unwrap_err();
        assert_eq!(error.to_string(), "commit /namespace: expected at revision 1, but is at revision 3");
        put(&store, "/quota", "full").await;
        let error = store.commit(ops(3)).await.unwrap_err();
        assert_eq!(error.to_string(), "commit /quota: expected to be absent, but is at revision 4");
        assert_eq!(store.get("/pod").await.unwrap().unwrap().revision, 2);

        let only = vec![Op::check("/namespace", Expect::Revision(3))];
        assert_eq!(store.commit(only).await.unwrap().revision, 4);
        let both = vec![
            Op::check("/pod", Expect::Anything),
            Op::delete("/pod", Expect::Anything),
        ];
        assert!(matches!(store.commit(both).await, Err(Error::Duplicate { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_store_is_healthy_until_it_is_closed() {
    on_each(Options::default(), async |store| {
        assert_eq!(store.health().await, Health::Healthy);
        store.close().await;
        assert_eq!(store.health().await.to_string(), "unavailable: the store is closed");
    })
    .await;
}

#[tokio::test]
async fn a_commit_that_changes_nothing_takes_no_revision() {
    on_each(Options::default(), async |store| {
        put(&store, "/a", "one").await;
        assert_eq!(delete(&store, "/b").await, 1);
        assert_eq!(store.commit(vec![]).await.unwrap().revision, 1);
        assert_eq!(put(&store, "/a", "two").await, 2);
    })
    .await;
}

#[tokio::test]
async fn a_value_names_its_revision_and_a_removed_value_that_of_its_removal() {
    on_each(Options::default(), async |store| {
        let value = Value::stamped("rv= end", 3);
        let committed = store.commit(vec![Op::put("/a", value, Expect::Absent)]).await.unwrap();
        assert_eq!(committed.entries[0].as_ref().unwrap().value, "rv=1 end");
        let mut watch = store.watch("/", 1).await.unwrap();
        let committed = store.commit(vec![Op::delete("/a", Expect::Revision(1))]).await.unwrap();
        let removed = committed.entries[0].as_ref().unwrap();
        assert_eq!((&removed.value[..], removed.revision, removed.created), (&b"rv=2 end"[..], 2, 1));
        let event = &taken(&mut watch, 1).await[0];
        assert_eq!((event.value.clone(), &event.last[..], event.created), (None, &b"rv=2 end"[..], false));
        assert_eq!(event.previous.as_ref().unwrap().value, "rv=1 end");
    })
    .await;
}

#[tokio::test]
async fn a_range_is_cut_by_prefix_start_and_limit() {
    on_each(Options::default(), async |store| {
        for key in ["/a/1", "/a/2", "/a/3", "/ab", "/b/1"] {
            put(&store, key, "v").await;
        }
        assert_eq!(keys(&store, Range::prefix("/a/")).await, ["/a/1", "/a/2", "/a/3"]);
        let start = Some("/a/2".into());
        assert_eq!(
            keys(&store, Range { start: start.clone(), ..Range::prefix("/a/") }).await,
            ["/a/2", "/a/3"]
        );
        let page = store.range(Range { limit: Some(1), start, ..Range::prefix("/a") }).await.unwrap();
        assert_eq!((page.entries.len(), page.more, page.remaining, page.revision), (1, true, 2, 5));
        let page = store.range(Range { limit: Some(3), ..Range::prefix("/a/") }).await.unwrap();
        assert_eq!((page.more, page.remaining), (false, 0));
    })
    .await;
}

#[tokio::test]
async fn a_range_at_an_earlier_revision_is_as_it_was() {
    on_each(Options::default(), async |store| {
        put(&store, "/a", "one").await;
        put(&store, "/c", "one").await;
        put(&store, "/a", "two").await;
        delete(&store, "/c").await;
        put(&store, "/b", "one").await;
        let page = store
            .range(Range { revision: Some(2), limit: Some(1), ..Range::default() })
            .await
            .unwrap();
        assert_eq!((&page.entries[0].value[..], page.remaining, page.revision), (&b"one"[..], 1, 2));
        assert_eq!(keys(&store, Range { revision: Some(2), ..Range::default() }).await, ["/a", "/c"]);
        assert_eq!(keys(&store, Range { revision: Some(4), ..Range::default() }).await, ["/a"]);
        assert_eq!(keys(&store, Range { revision: Some(0), ..Range::default() }).await, [""; 0]);
        assert_eq!(keys(&store, Range::default()).await, ["/a", "/b"]);
    })
    .await;
}

#[tokio::test]
async fn a_revision_to_come_is_refused() {
    on_each(Options::default(), async |store| {
        let error = store.range(Range { revision: Some(1), ..Range::default() }).await.unwrap_err();
        assert_eq!(error.to_string(), "revision 1 is in the future: the store is at 0");
        assert!(matches!(store.watch("", 1).await, Err(Error::Future { requested: 1, current: 0 })));
        assert!(matches!(store.compact(1).await, Err(Error::Future { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_compacted_revision_is_refused_and_the_oldest_named() {
    on_each(Options::default(), async |store| {
        for value in ["one", "two", "three"] {
            put(&store, "/a", value).await;
        }
        store.compact(2).await.unwrap();
        let error = store.range(Range { revision: Some(1), ..Range::default() }).await.unwrap_err();
        assert_eq!(error.to_string(), "revision 1 is compacted: the oldest that can be read is 2");
        assert!(matches!(store.watch("", 1).await, Err(Error::Compacted { requested: 1, oldest: 2 })));
        assert_eq!(
            seen(&mut store.watch("", 2).await.unwrap(), 1).await,
            [(3, "/a".into(), Some("three".into()))]
        );
        let page = store.range(Range { revision: Some(2), ..Range::default() }).await.unwrap();
        assert_eq!(page.entries[0].value, "two");
    })
    .await;
}

#[tokio::test]
async fn history_is_bounded_by_revisions() {
    on_each(Options { history_revisions: 3, ..Options::default() }, async |store| {
        for _ in 0..10 {
            put(&store, "/a", "v").await;
        }
        assert!(matches!(store.watch("", 6).await, Err(Error::Compacted { oldest: 7, .. })));
        taken(&mut store.watch("", 7).await.unwrap(), 3).await;
    })
    .await;
}

#[tokio::test]
async fn history_is_bounded_by_bytes() {
    on_each(Options { history_bytes: 10_000, ..Options::default() }, async |store| {
        for _ in 0..10 {
            put(&store, "/a", &"v".repeat(3_000)).await;
        }
        assert!(matches!(store.watch("", 6).await, Err(Error::Compacted { oldest: 7, .. })));
    })
    .await;
}

#[tokio::test]
async fn a_watch_hands_out_the_past_then_the_present_once_and_in_order() {
    on_each(Options::default(), async |store| {
        put(&store, "/a/1", "one").await;
        put(&store, "/b/1", "one").await;
        put(&store, "/a/1", "two").await;
        let mut watch = store.watch("/a/", 1).await.unwrap();
        put(&store, "/a/2", "one").await;
        put(&store, "/c/1", "one").await;
        assert_eq!(
            seen(&mut watch, 2).await,
            [
                (3, "/a/1".into(), Some("two".into())),
                (4, "/a/2".into(), Some("one".into()))
            ]
        );
        delete(&store, "/a/1").await;
        assert_eq!(seen(&mut watch, 1).await, [(6, "/a/1".into(), None)]);
    })
    .await;
}

#[tokio::test]
async fn each_watcher_gets_the_changes_of_its_prefix() {
    on_each(Options::default(), async |store| {
        let prefixes = ["", "/", "/a", "/a/", "/a/b", "/a/c", "/ab", "/b", "/a/b/c"];
        let mut watches = Vec::new();
        for prefix in prefixes {
            watches.push((prefix, store.watch(prefix, 0).await.unwrap()));
        }
        let keys = ["/a/b", "/a/b/c", "/a/bc", "/ab", "/a", "/c", "x"];
        for key in keys {
            put(&store, key, "v").await;
        }
        for (prefix, mut watch) in watches {
            let expected: Vec<_> = keys.into_iter().filter(|key| key.starts_with(prefix)).map(str::to_owned).collect();
            let found: Vec<_> = seen(&mut watch, expected.len()).await.into_iter().map(|(_, key, _)| key).collect();
            assert_eq!(found, expected, "under {prefix:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_watch_knows_up_to_where_it_has_seen_everything() {
    on_each(Options::default(), async |store| {
        let mut watch = store.watch("/a", 0).await.unwrap();
        put(&store, "/b", "v").await;
        let both = ["/a1", "/a2"].map(|key| Op::put(key, "v", Expect::Anything)).to_vec();
        store.commit(both).await.unwrap();
        assert!(watch.revision() < 2, "revision 2 waits to be taken");
        watch.next().await.unwrap().unwrap();
        assert_eq!(watch.revision(), 1);
        watch.next().await.unwrap().unwrap();
        assert_eq!(watch.revision(), 2);
        put(&store, "/c", "v").await;
        put(&store, "/d", "v").await;
        assert!(watch.revision() >= 3, "nothing under /a happened since");
    })
    .await;
}

#[tokio::test]
async fn what_was_there_before_counts_too_where_a_watcher_is_slow() {
    let options = Options { watch_bytes: 100_000, ..Options::default() };
    on_each(options, async |store| {
        let all = |value: String| (0..50).map(|n| Op::put(format!("/{n}"), value.clone(), Expect::Anything)).collect();
        let before = store.commit(all("v".repeat(10_000))).await.unwrap().revision;
        let mut slow = store.watch("/", before).await.unwrap();
        let mut last = store.watch("/last", before).await.unwrap();
        store.commit(all("v".to_owned())).await.unwrap();
        put(&store, "/other", "v").await;
        put(&store, "/last", "v").await;
        // Commits are acknowledged before they are published, and published in their order.
        taken(&mut last, 1).await;
        let mut events = 0;
        while let Ok(event) = slow.next().await.unwrap() {
            events += 1;
            assert_eq!(event.previous.as_ref().map(|entry| entry.value.len()), Some(10_000));
        }
        assert_eq!(events, 50);
    })
    .await;
}

#[tokio::test]
async fn a_slow_watch_is_ended_and_delays_no_other() {
    on_each(Options { watch_bytes: 10_000, ..Options::default() }, async |store| {
        let mut slow = store.watch("/", 0).await.unwrap();
        let mut quick = store.watch("/", 0).await.unwrap();
        for _ in 0..20 {
            put(&store, "/a", &"v".repeat(1_000)).await;
            taken(&mut quick, 1).await;
        }
        let mut last = 0;
        let error = loop {
            match slow.next().await.expect("an error comes before the end") {
                Ok(event) => last = event.revision,
                Err(error) => break error,
            }
        };
        assert_eq!(error.to_string(), "watch /: ended because its events were not taken in time");
        assert!(slow.next().await.is_none());
        assert!((5..20).contains(&last), "{last}");
        assert_eq!(slow.revision(), last);
        taken(&mut store.watch("/", last).await.unwrap(), 20 - last as usize).await;
    })
    .await;
}

#[tokio::test]
async fn a_closed_store_ends_its_watches_and_refuses_commits() {
    on_each(Options::default(), async |store| {
        let mut watch = store.watch("/", 0).await.unwrap();
        store.close().await;
        assert!(matches!(watch.next().await, Some(Err(Error::Closed))));
        assert!(matches!(
            store.commit(vec![Op::put("/a", "v", Expect::Anything)]).await,
            Err(Error::Closed)
        ));
        assert!(matches!(store.watch("/", 0).await, Err(Error::Closed)));
    })
    .await;
}

#[tokio::test]
async fn a_reader_can_wait_for_a_revision() {
    on_each(Options::default(), async |store| {
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.reached(2).await }
        });
        put(&store, "/a", "one").await;
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        put(&store, "/a", "two").await;
        waiting.await.unwrap();
        store.reached(1).await;
    })
    .await;
}

#[test]
fn memory_answers_at_once_without_a_runtime() {
    let store = Store::memory();
    let mut watch = store.watch("/", 0).now_or_never().unwrap().unwrap();
    put(&store, "/a", "one").now_or_never().unwrap();
    assert!(watch.next().now_or_never().is_some());
    assert!(store.get("/a").now_or_never().is_some());
    assert!(store.range(Range::default()).now_or_never().is_some());
    assert!(store.reached(1).now_or_never().is_some());
    assert!(store.compact(1).now_or_never().is_some());
}
