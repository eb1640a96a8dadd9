//! One atomic write in a journal, ours or the engine's: a start with the number of items, the items, an end with their hash.

use super::summary::Key;
use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
pub(crate) const TRAILER: &[u8] = b"FJL\x03";

const PUT: u8 = 0;
const REMOVAL: u8 = 1;

/// Where the items begin: after the tag, their number and the sequence.
const ITEMS: usize = 1 + 4 + 8;

/// A frame as it was read.
pub(crate) struct Frame<'a> {
    pub sequence: u64,
    pub items: Vec<Item<'a>>,
    pub length: usize,
}

pub(crate) struct Item<'a> {
    pub is_removal: bool,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// Why there is no frame.
pub(crate) enum Broken {
    /// It may go on where the bytes end.
    Short,
    /// It is no frame.
    Wrong,
}

impl<'a> Frame<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Frame<'a>, Broken> {
        let mut reader = Reader { bytes, at: 0 };
        reader.expect(START)?;
        let count = u32::from_le_bytes(reader.array()?);
        let sequence = u64::from_le_bytes(reader.array()?);
        let items = (0..count).map(|_| reader.item()).collect::<Result<_, _>>()?;
        let until = reader.at;
        reader.expect(END)?;
        let hash = u64::from_le_bytes(reader.array()?);
        let trailer = reader.take(TRAILER.len())?;
        if hash != xxh3_64(&bytes[ITEMS..until]) || trailer != TRAILER {
            return Err(Broken::Wrong);
        }
        Ok(Frame { sequence, items, length: reader.at })
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads tag, kind, compression (none), keyspace, lengths of key, value and stored value; then key and value.
    fn item(&mut self) -> Result<Item<'a>, Broken> {
        self.expect(ITEM)?;
        let [kind, compression] = self.array()?;
        let _keyspace: [u8; 8] = self.array()?;
        let key = u16::from_le_bytes(self.array()?);
        let value = u32::from_le_bytes(self.array()?);
        let stored = u32::from_le_bytes(self.array()?);
        if compression != 0 || value != stored {
            return Err(Broken::Wrong);
        }
        Ok(Item {
            is_removal: kind == REMOVAL,
            key: self.take(key.into())?,
            value: self.take(value as usize)?,
        })
    }

    fn expect(&mut self, tag: u8) -> Result<(), Broken> {
        if self.array::<1>()? == [tag] {
            Ok(())
        } else {
            Err(Broken::Wrong)
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        Ok(self.take(N)?.try_into().expect("as long as asked for"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or(Broken::Short)?;
        self.at += length;
        Ok(taken)
    }
}

/// A frame that is being written; its memory is used again for the next one.
#[derive(Default)]
pub(crate) struct Draft {
    bytes: Vec<u8>,
    items: u32,
}

impl Draft {
    pub fn put(&mut self, key: Key, value: &[u8]) {
        self.item(PUT, key, value);
    }

    pub fn remove(&mut self, key: Key) {
        self.item(REMOVAL, key, &[]);
    }

    fn item(&mut self, kind: u8, key: Key, value: &[u8]) {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&[0; ITEMS]);
        }
        let length = (value.len() as u32).to_le_bytes();
        self.bytes.extend_from_slice(&[ITEM, kind, 0]);
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(&key);
        self.bytes.extend_from_slice(value);
        self.items += 1;
    }

    /// Ends the frame, hands it to the one who writes it, and starts the next one.
    pub fn end<T>(&mut self, sequence: u64, write: impl FnOnce(&[u8]) -> T) -> T {
        let hash = xxh3_64(&self.bytes[ITEMS..]);
        self.bytes[0] = START;
        self.bytes[1..5].copy_from_slice(&self.items.to_le_bytes());
        self.bytes[5..ITEMS].copy_from_slice(&sequence.to_le_bytes());
        self.bytes.push(END);
        self.bytes.extend_from_slice(&hash.to_le_bytes());
        self.bytes.extend_from_slice(TRAILER);
        let written = write(&self.bytes);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.items = 0;
        written
    }
}

/// So much memory is kept for the next frame.
const KEPT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let mut draft = Draft::default();
        for sequence in [7, 8] {
            draft.put([1; 12], b"value");
            draft.remove([2; 12]);
            let mut bytes = draft.end(sequence, <[u8]>::to_vec);
            bytes.extend_from_slice(b"what follows");
            let Ok(frame) = Frame::read(&bytes) else {
                panic!("it is no frame")
            };
            assert_eq!((frame.sequence, frame.length), (sequence, bytes.len() - "what follows".len()));
            let items: Vec<_> = frame.items.iter().map(|item| (item.is_removal, item.key, item.value)).collect();
            assert_eq!(items, [(false, &[1; 12][..], &b"value"[..]), (true, &[2; 12][..], &b""[..])]);
        }
    }
}
