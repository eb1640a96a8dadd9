//! Memory for what is written: small records share an allocation, because one thread makes them and another one frees them a
//! moment later, all at once, and whoever asks for memory meanwhile would wait for each.

use bytes::BytesMut;
use std::sync::{Mutex, PoisonError};

/// So much is allocated at once. Whoever keeps one record keeps all that share its allocation, so it is not much.
const CHUNK: usize = 8 << 10;

/// What is longer has an allocation of its own.
const SMALL: usize = CHUNK / 4;

/// Memory for records that come and go in the same order.
#[derive(Default)]
pub(crate) struct Slab(Mutex<BytesMut>);

impl Slab {
    /// So many bytes, to be written.
    pub fn take(&self, length: usize) -> BytesMut {
        if length > SMALL {
            return BytesMut::zeroed(length);
        }
        let mut chunk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chunk.len() < length {
            *chunk = BytesMut::zeroed(CHUNK);
        }
        chunk.split_to(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_share_an_allocation_and_large_ones_do_not() {
        let slab = Slab::default();
        let taken: Vec<_> = (0..100).map(|_| slab.take(1_000)).collect();
        let is_next = |pair: &[BytesMut]| pair[0].as_ptr().wrapping_add(1_000) == pair[1].as_ptr();
        let alone = taken.windows(2).filter(|pair| !is_next(pair)).count();
        assert!(alone < 100 / 7 && taken.iter().all(|bytes| bytes.len() == 1_000), "{alone}");
        let large = slab.take(SMALL + 1);
        assert!(large.len() == SMALL + 1 && large.capacity() < CHUNK);
        assert_eq!(slab.take(0).len(), 0);
    }
}
