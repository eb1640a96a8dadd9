//! The encoding of keys and values in etcd: a key follows the store's prefix; a value follows the offset of its stamp, because
//! etcd assigns the revision only with the write.

use super::wire::KeyValue;
use crate::{Entry, Value, entry::stamp};
use bytes::Bytes;

/// The format of values, their first byte; the offset of the stamp follows, in four bytes.
const FORMAT: u8 = 1;
const HEADER: usize = 5;
const UNSTAMPED: u32 = u32::MAX;

/// The prefix of a store's keys in etcd.
#[derive(Clone)]
pub(crate) struct Keys(pub Bytes);

impl Keys {
    /// The key in etcd of a key of the store.
    pub fn outer(&self, key: &[u8]) -> Bytes {
        [&self.0, key].concat().into()
    }

    /// The end in etcd of the keys that begin with a prefix.
    pub fn end(&self, prefix: &[u8]) -> Bytes {
        let mut end = [&self.0, prefix].concat();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return end.into();
            }
        }
        // To the end of all keys.
        Bytes::from_static(b"\0")
    }

    /// The entry that a pair is; `None` where no store wrote it.
    pub fn entry(&self, pair: &KeyValue) -> Option<Entry> {
        let (header, value) = pair.value.split_at_checked(HEADER)?;
        let revision_at = match u32::from_be_bytes(header[1..].try_into().expect("four bytes")) {
            UNSTAMPED => None,
            at if at as usize <= value.len() => Some(at as usize),
            _ => return None,
        };
        let revision = pair.mod_revision as u64;
        let value = match revision_at {
            Some(at) => stamp(&value[..at], revision, &value[at..]),
            None => pair.value.slice(HEADER..),
        };
        (header[0] == FORMAT && pair.key.starts_with(&self.0)).then(|| Entry {
            key: pair.key.slice(self.0.len()..),
            value,
            revision,
            revision_at,
            created: pair.create_revision as u64,
        })
    }
}

/// The bytes to put for a value.
pub(crate) fn encode(value: &Value) -> Bytes {
    let at = value.revision_at.map_or(UNSTAMPED, |at| at as u32);
    [&[FORMAT][..], &at.to_be_bytes(), &value.bytes].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(value: &Value, revision: i64) -> KeyValue {
        KeyValue {
            key: "/flyball/a".into(),
            create_revision: 3,
            mod_revision: revision,
            value: encode(value),
        }
    }

    #[test]
    fn a_value_is_stamped_when_it_is_read() {
        let keys = Keys("/flyball".into());
        let entry = keys.entry(&pair(&Value::stamped("rv= end", 3), 12)).unwrap();
        assert_eq!((&entry.key[..], &entry.value[..]), (&b"/a"[..], &b"rv=12 end"[..]));
        assert_eq!((entry.revision, entry.revision_at, entry.created), (12, Some(3), 3));
        assert_eq!(keys.entry(&pair(&Value::plain("v"), 12)).unwrap().value, "v");
    }

    #[test]
    fn what_no_store_wrote_is_not_read() {
        let keys = Keys("/flyball".into());
        assert_eq!(keys.entry(&KeyValue { value: "v".into(), ..pair(&Value::plain(""), 1) }), None);
        assert_eq!(keys.entry(&KeyValue { value: "{\"a\":1}".into(), ..pair(&Value::plain(""), 1) }), None);
        assert_eq!(keys.entry(&pair(&Value::stamped("rv", 3), 1)), None);
    }

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(Keys("/f".into()).end(b"/a/"), "/f/a0");
        assert_eq!(Keys("/f".into()).end(b"\xff"), "/g");
        assert_eq!(Keys(Bytes::new()).end(b""), "\0");
    }
}
