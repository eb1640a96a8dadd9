//! The end of a file in whole blocks, in memory that a disk can read from. What is written that way does not pass through the
//! system's memory of files, which takes a tenth of the time of a flush.

use super::sector::{self, Mark, ROOM, SECTOR};
use std::io;

/// So long is a block, and its address in memory is a multiple of it. No disk asks for more.
pub(crate) const BLOCK: usize = 4 << 10;

/// So much fits into a block beside the marks of its sectors.
const WITHIN: usize = BLOCK / SECTOR * ROOM;

/// So much is written at once at most: all that is written is copied to memory of this size first.
const MOST: usize = if cfg!(test) { 3 * WITHIN } else { 1 << 20 };

/// The last block of a file, and room for what will be written after it.
pub(crate) struct Blocks {
    mark: Mark,
    memory: Vec<u8>,
    /// Where the blocks begin in memory.
    start: usize,
    /// How much the file's last block holds already.
    tail: usize,
}

impl Blocks {
    /// Begins a file with this mark.
    pub fn of(mark: Mark) -> Blocks {
        Blocks { mark, memory: Vec::new(), start: 0, tail: 0 }
    }

    /// Adds bytes to a file that holds so many; hands over the blocks that are others now, filled up with zeros, with their
    /// place in the file.
    pub fn add(
        &mut self,
        length: u64,
        bytes: &[u8],
        mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut at = (length - self.tail as u64) / WITHIN as u64 * BLOCK as u64;
        for part in bytes.chunks(MOST) {
            let (mark, tail, end) = (self.mark, self.tail, self.tail + part.len());
            let blocks = self.blocks(end.div_ceil(WITHIN) * BLOCK);
            sector::write(blocks, mark, tail, part);
            write(blocks, at)?;
            let whole = end / WITHIN;
            blocks.copy_within(whole * BLOCK.., 0);
            self.tail = end - whole * WITHIN;
            at += (whole * BLOCK) as u64;
        }
        Ok(())
    }

    /// Room for blocks of so many bytes, the first of which is the file's last block.
    fn blocks(&mut self, length: usize) -> &mut [u8] {
        if self.start + length > self.memory.len() {
            let mut memory = vec![0; BLOCK + length.next_power_of_two()];
            let start = memory.as_ptr().align_offset(BLOCK);
            let held = self.memory.get(self.start..self.start + BLOCK).unwrap_or_default();
            memory[start..start + held.len()].copy_from_slice(held);
            (self.memory, self.start) = (memory, start);
        }
        &mut self.memory[self.start..self.start + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_was_added_to_it_and_zeros_up_to_the_end_of_its_last_block() {
        let (mut blocks, mut file, mut expected) = (Blocks::of(sector::mark(7)), Vec::new(), Vec::new());
        for n in 0..2_000_usize {
            let added = vec![n as u8 | 1; n * 7_919 % (5 * BLOCK)];
            let written = blocks.add(expected.len() as u64, &added, |blocks, at| {
                let places = [blocks.as_ptr() as usize, blocks.len(), at as usize];
                assert!(places.iter().all(|place| place.is_multiple_of(BLOCK)));
                file.truncate(at as usize);
                file.extend_from_slice(blocks);
                Ok(())
            });
            written.unwrap();
            expected.extend_from_slice(&added);
            if n % 100 == 99 {
                check(&file, &expected);
            }
        }
    }

    fn check(file: &[u8], expected: &[u8]) {
        let sectors = file.chunks(SECTOR).map(|bytes| sector::Sector::read(bytes, 7));
        let (written, after): (Vec<_>, Vec<_>) = sectors.partition(|found| matches!(found, sector::Sector::Written(_)));
        assert!(written.len() == expected.len().div_ceil(ROOM) && after.len() < BLOCK / SECTOR);
        assert!(after.iter().all(|found| *found == sector::Sector::Unwritten));
        let mut held = expected.to_vec();
        held.resize(written.len() * ROOM, 0);
        let rooms = file.chunks(SECTOR).take(written.len()).flat_map(|sector| &sector[..ROOM]);
        assert!(rooms.eq(&held));
    }
}
