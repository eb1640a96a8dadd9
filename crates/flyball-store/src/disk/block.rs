//! The end of a file in whole blocks, in memory that a disk can read from. What is written that way does not pass through the
//! system's memory of files, which takes a tenth of the time of a flush.

use std::io;

/// So long is a block, and its address in memory is a multiple of it. No disk asks for more.
pub(crate) const BLOCK: usize = 4 << 10;

/// So much is written at once at most: all that is written is copied to memory of this size first.
const MOST: usize = if cfg!(test) { 3 * BLOCK } else { 1 << 20 };

/// What follows in a file after its last whole block, and room for what will be written after it.
#[derive(Default)]
pub(crate) struct Blocks {
    memory: Vec<u8>,
    /// Where the blocks begin in memory.
    start: usize,
    /// How many bytes of the file's last block are written already.
    tail: usize,
}

impl Blocks {
    /// Adds bytes to the end of a file that is so long; hands over the blocks that are others now, filled up with zeros, with
    /// their place in the file.
    pub fn add(
        &mut self,
        length: u64,
        bytes: &[u8],
        mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut at = length - self.tail as u64;
        for part in bytes.chunks(MOST) {
            let end = self.tail + part.len();
            self.reserve(end.next_multiple_of(BLOCK));
            let blocks = &mut self.memory[self.start..self.start + end.next_multiple_of(BLOCK)];
            blocks[self.tail..end].copy_from_slice(part);
            blocks[end..].fill(0);
            write(blocks, at)?;
            let whole = end / BLOCK * BLOCK;
            blocks.copy_within(whole..end, 0);
            self.tail = end - whole;
            at += whole as u64;
        }
        Ok(())
    }

    /// Makes room for blocks of so many bytes.
    fn reserve(&mut self, length: usize) {
        if self.start + length > self.memory.len() {
            let mut memory = vec![0; BLOCK + length.next_power_of_two()];
            let start = memory.as_ptr().align_offset(BLOCK);
            memory[start..start + self.tail].copy_from_slice(&self.memory[self.start..self.start + self.tail]);
            (self.memory, self.start) = (memory, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_was_added_to_it_and_zeros_up_to_the_end_of_its_last_block() {
        let (mut blocks, mut file, mut expected) = (Blocks::default(), Vec::new(), Vec::new());
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
            let (held, after) = file.split_at(expected.len());
            assert!(held.ends_with(&added) && after.len() < BLOCK && after.iter().all(|byte| *byte == 0));
        }
        assert!(file[..expected.len()] == expected[..]);
    }
}
