//! What watchers share of a change: its attributes for selectors, the converted object and the encoded line are made
//! once, however many watchers there are.

use crate::endpoints::filter::{Attributes, Filter};
use crate::registry::{Kind, object};
use crate::response::{Change, WatchEvent};
use crate::status::Result;
use bytes::Bytes;
use flyball_store::Event;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::OnceCell;

/// How many changes are kept, for watchers that are not quite as fast as the first.
const MAX_EVENTS: usize = 256;

/// The changes seen last. Each has one slot, given by a hash, so that a lookup takes the lock of one slot.
pub(crate) struct EncodedEventCache {
    slots: Vec<Mutex<Option<Arc<CachedEvent>>>>,
}

impl Default for EncodedEventCache {
    fn default() -> EncodedEventCache {
        EncodedEventCache { slots: (0..MAX_EVENTS).map(|_| Mutex::default()).collect() }
    }
}

impl EncodedEventCache {
    /// The shared form of a change, as watchers of a kind see it.
    pub fn get(&self, kind: &Arc<Kind>, event: &Arc<Event>) -> Arc<CachedEvent> {
        let mut hasher = DefaultHasher::new();
        (Arc::as_ptr(kind), event.revision, &event.key).hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % MAX_EVENTS as u64).unwrap_or_default();
        let mut slot = self.slots[at].lock().expect("no panic while held");
        match &*slot {
            Some(known) if known.is(kind, event) => known.clone(),
            _ => slot.insert(Arc::new(CachedEvent::new(kind.clone(), event.clone()))).clone(),
        }
    }
}

/// One change in the version of a kind; each part is made when the first watcher needs it.
pub(crate) struct CachedEvent {
    kind: Arc<Kind>,
    event: Arc<Event>,
    /// The new state, or that in which the object was deleted, in the version of the kind.
    last: OnceCell<Bytes>,
    /// The state before, in the version of the kind.
    previous: OnceCell<Option<Bytes>>,
    attributes: OnceLock<Option<Attributes>>,
    previous_attributes: OnceLock<Option<Attributes>>,
    lines: [OnceLock<Bytes>; 3],
}

impl CachedEvent {
    fn new(kind: Arc<Kind>, event: Arc<Event>) -> CachedEvent {
        CachedEvent {
            kind,
            event,
            last: OnceCell::new(),
            previous: OnceCell::new(),
            attributes: OnceLock::new(),
            previous_attributes: OnceLock::new(),
            lines: Default::default(),
        }
    }

    fn is(&self, kind: &Arc<Kind>, event: &Event) -> bool {
        Arc::ptr_eq(&self.kind, kind) && self.event.revision == event.revision && self.event.key == event.key
    }

    /// Converts the change for the first watcher that needs it; the other methods read what is converted.
    pub async fn convert(&self, filter: &Filter) -> Result<()> {
        let (event, kind) = (&self.event, &self.kind);
        self.last
            .get_or_try_init(|| kind.convert_from_storage(&event.last, event.revision))
            .await?;
        let previous = || async {
            match &event.previous {
                Some(previous) => kind.convert_from_storage(&previous.value, previous.revision).await.map(Some),
                None => Ok(None),
            }
        };
        if !filter.is_empty() {
            self.previous.get_or_try_init(previous).await?;
        }
        Ok(())
    }

    /// What selectors compare of the new state; none if the object was deleted.
    pub fn attributes(&self) -> Option<&Attributes> {
        let attributes = || self.event.value.is_some().then(|| Attributes::of(self.last()));
        self.attributes.get_or_init(attributes).as_ref()
    }

    /// What selectors compare of the state before; none if the object was created.
    pub fn previous_attributes(&self) -> Option<&Attributes> {
        let attributes = || self.previous().map(Attributes::of);
        self.previous_attributes.get_or_init(attributes).as_ref()
    }

    /// The change as watchers see it.
    pub fn event(&self, change: Change) -> WatchEvent {
        let object = self.last();
        let line = match change {
            Change::Added => &self.lines[0],
            Change::Modified => &self.lines[1],
            _ => &self.lines[2],
        };
        let frame = Some(line.get_or_init(|| frame(change, &object)).clone());
        WatchEvent { change, object, frame }
    }

    /// The change as watchers see it whose selectors the object does not match any more: its last state that did.
    pub fn left(&self) -> Option<WatchEvent> {
        let (stored, previous) = (self.event.previous.as_ref()?, self.previous()?);
        let object = match previous == stored.value {
            true => object::restamp(stored, self.event.revision),
            false => {
                let mut object = object::decode(&previous);
                let version = self.event.revision.to_string().into();
                object::metadata_mut(&mut object).insert("resourceVersion".into(), version);
                object::encode_unstored(&object)
            }
        };
        Some(WatchEvent::new(Change::Deleted, object))
    }

    fn last(&self) -> Bytes {
        self.last.get().cloned().expect("a change is converted before it is read")
    }

    fn previous(&self) -> Option<Bytes> {
        self.previous.get().cloned().expect("a change is converted before it is read")
    }
}

/// The line of a change: `{"type":"ADDED","object":{…}}`.
pub fn frame(change: Change, object: &[u8]) -> Bytes {
    let head = format!("{{\"type\":\"{}\",\"object\":", change.name());
    [head.as_bytes(), object, b"}\n"].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_schema::kinds;
    use flyball_store::{Expect, Op, Store};

    fn kind(plural: &str) -> Arc<Kind> {
        let resources = &kinds::builtin().resources;
        let found = resources.iter().find(|it| it.group.is_empty() && &*it.plural == plural);
        Arc::new(Kind::built_in(found.unwrap().clone()))
    }

    async fn change(value: &'static str) -> Arc<Event> {
        let store = Store::memory();
        let mut watch = store.watch("", 0).await.unwrap();
        store.commit(vec![Op::put("key", value, Expect::Absent)]).await.unwrap();
        watch.next().await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn watchers_of_a_kind_share_what_a_change_is_decoded_to() {
        let (cache, pods, nodes) = (EncodedEventCache::default(), kind("pods"), kind("nodes"));
        let event = change(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}"#).await;
        // A watch that reads the history has an event of its own for the same change.
        let again = Arc::new((*event).clone());

        let (first, second) = (cache.get(&pods, &event), cache.get(&pods, &again));
        first.convert(&Filter::default()).await.unwrap();

        assert!(Arc::ptr_eq(&first, &second));
        assert!(std::ptr::eq(first.attributes().unwrap(), second.attributes().unwrap()));
        let lines = [first.event(Change::Added), second.event(Change::Added)].map(|event| event.frame.unwrap());
        assert_eq!(lines[0].as_ptr(), lines[1].as_ptr());
        assert!(!Arc::ptr_eq(&first, &cache.get(&nodes, &event)));
    }
}
