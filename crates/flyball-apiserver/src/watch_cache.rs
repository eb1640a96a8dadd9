//! The lines of watches, shared: a change is put into its line once, however many watchers there are.

use crate::response::{Change, WatchEvent};
use bytes::Bytes;
use flyball_store::Event;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How many lines are kept for watchers that are not quite as fast as the first.
const KEPT: usize = 256;

/// The lines made last.
#[derive(Default)]
pub(crate) struct EncodedEventCache(Mutex<VecDeque<(Arc<Event>, Change, Bytes)>>);

impl EncodedEventCache {
    /// A change of the store as watchers see it.
    pub fn event(&self, event: &Arc<Event>, change: Change) -> WatchEvent {
        WatchEvent {
            change,
            object: event.last.clone(),
            frame: Some(self.frame(event, change)),
        }
    }

    fn frame(&self, event: &Arc<Event>, change: Change) -> Bytes {
        let mut frames = self.0.lock().expect("no panic while held");
        let known = frames
            .iter()
            .rev()
            .find(|(known, its_change, _)| Arc::ptr_eq(known, event) && *its_change == change);
        if let Some((_, _, frame)) = known {
            return frame.clone();
        }
        let frame = frame(change, &event.last);
        if frames.len() == KEPT {
            frames.pop_front();
        }
        frames.push_back((event.clone(), change, frame.clone()));
        frame
    }
}

/// The line of a change: `{"type":"ADDED","object":{…}}`.
pub fn frame(change: Change, object: &[u8]) -> Bytes {
    let head = format!("{{\"type\":\"{}\",\"object\":", change.name());
    [head.as_bytes(), object, b"}\n"].concat().into()
}
