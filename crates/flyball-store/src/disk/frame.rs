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
    /// Reads the batch at the beginning of some bytes.
    pub fn read(bytes: &[u8]) -> Result<Frame, FrameError> {
        let mut rest = bytes;
        expect(&mut rest, START)?;
        let count = u32::from_le_bytes(array(&mut rest)?);
        let sequence = u64::from_le_bytes(array(&mut rest)?);
        let (items, mut checkpoint) = (rest, None);
        for _ in 0..count {
            let (key, value) = item(&mut rest)?;
            if key == CHECKPOINT_KEY {
                checkpoint = Checkpoint::read(value);
            }
        }
        let items = &items[..items.len() - rest.len()];
        expect(&mut rest, END)?;
        let hash = u64::from_le_bytes(array(&mut rest)?);
        if hash != xxh3_64(items) || take(&mut rest, TRAILER.len())? != TRAILER {
            return Err(FrameError::Invalid);
        }
        Ok(Frame { sequence, checkpoint, length: bytes.len() - rest.len() })
    }
}

/// Takes tag, kind, compression (none), keyspace, lengths of key, value and stored value; then key and value.
fn item<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8]), FrameError> {
    expect(rest, ITEM)?;
    let [_kind, compression] = array(rest)?;
    let _keyspace: [u8; 8] = array(rest)?;
    let key = u16::from_le_bytes(array(rest)?);
    let value = u32::from_le_bytes(array(rest)?);
    let stored = u32::from_le_bytes(array(rest)?);
    if compression != 0 || value != stored {
        return Err(FrameError::Invalid);
    }
    Ok((take(rest, key.into())?, take(rest, value as usize)?))
}

fn expect(rest: &mut &[u8], tag: u8) -> Result<(), FrameError> {
    let found = array::<1>(rest)?;
    if found == [tag] {
        Ok(())
    } else {
        Err(FrameError::Invalid)
    }
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], FrameError> {
    Ok(take(rest, N)?.try_into().expect("as long as asked for"))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], FrameError> {
    let (taken, after) = rest.split_at_checked(length).ok_or(FrameError::Short)?;
    *rest = after;
    Ok(taken)
}
