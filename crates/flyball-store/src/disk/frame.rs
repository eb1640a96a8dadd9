//! Reads one batch of fjall's journal: a start with the number of items, the items, an end with their hash. Knows the format
//! of fjall 3.1.13 (`journal/entry.rs`), which the workspace pins.

use super::checkpoint::{CHECKPOINT_KEY, Checkpoint};
use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;

/// The last bytes of every batch.
pub(crate) const TRAILER: &[u8] = b"FJL\x03";

/// A whole batch.
pub(crate) struct Frame {
    pub sequence: u64,
    /// The checkpoint among its items.
    pub checkpoint: Option<Checkpoint>,
    pub length: usize,
}

/// Why there is no frame.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// It may continue where the bytes end.
    Short,
    /// It is no frame, or its hash does not match.
    Invalid,
}

impl Frame {
    pub fn read(bytes: &[u8]) -> Result<Frame, FrameError> {
        let mut reader = Reader { bytes, at: 0 };
        reader.expect(START)?;
        let items = u32::from_le_bytes(reader.array()?);
        let sequence = u64::from_le_bytes(reader.array()?);
        let from = reader.at;
        let mut checkpoint = None;
        for _ in 0..items {
            let (key, value) = reader.item()?;
            if key == CHECKPOINT_KEY {
                checkpoint = Checkpoint::read(value);
            }
        }
        let until = reader.at;
        reader.expect(END)?;
        let hash = u64::from_le_bytes(reader.array()?);
        let trailer = reader.take(TRAILER.len())?;
        if hash != xxh3_64(&bytes[from..until]) || trailer != TRAILER {
            return Err(FrameError::Invalid);
        }
        Ok(Frame { sequence, checkpoint, length: reader.at })
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads tag, kind, compression (none), keyspace, lengths of key, value and stored value; then key and value.
    fn item(&mut self) -> Result<(&'a [u8], &'a [u8]), FrameError> {
        self.expect(ITEM)?;
        let [_kind, compression] = self.array()?;
        let _keyspace: [u8; 8] = self.array()?;
        let key = u16::from_le_bytes(self.array()?);
        let value = u32::from_le_bytes(self.array()?);
        let stored = u32::from_le_bytes(self.array()?);
        if compression != 0 || value != stored {
            return Err(FrameError::Invalid);
        }
        Ok((self.take(key.into())?, self.take(value as usize)?))
    }

    fn expect(&mut self, tag: u8) -> Result<(), FrameError> {
        if self.array::<1>()? == [tag] {
            Ok(())
        } else {
            Err(FrameError::Invalid)
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        Ok(self.take(N)?.try_into().expect("as long as asked for"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or(FrameError::Short)?;
        self.at += length;
        Ok(taken)
    }
}
