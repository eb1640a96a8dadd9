//! The sectors of a file that is used again without being cleared. Each ends with a mark of the file that it was written for:
//! it tells what is written from what was there before, and from what is damaged.

use xxhash_rust::xxh3::xxh3_64;

/// What a disk writes at once.
pub(crate) const SECTOR: usize = 512;

/// So much of a sector is before its mark.
pub(crate) const ROOM: usize = SECTOR - size_of::<Mark>();

/// What a sector ends with: the number of a file and a part of its hash, so that none becomes another one by damage. Zeros
/// are the end of a sector that was never written.
pub(crate) type Mark = [u8; 8];

/// The mark of a file.
pub(crate) fn mark(number: u64) -> Mark {
    let counted = number.wrapping_add(1);
    let hash = xxh3_64(&counted.to_be_bytes());
    (counted << 24 | hash >> 40).to_be_bytes()
}

/// What is found where a sector of a file is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sector<'a> {
    /// It was written for this file.
    Written(&'a [u8]),
    /// Nothing was written for this file.
    Unwritten,
    Damaged,
}

impl Sector<'_> {
    /// Reads a sector of a file with this number.
    pub fn read(bytes: &[u8], number: u64) -> Sector<'_> {
        let Some((room, found)) = bytes.split_last_chunk::<8>().filter(|_| bytes.len() == SECTOR) else {
            // The file may have been left while it was made.
            return if is_zero(bytes) {
                Sector::Unwritten
            } else {
                Sector::Damaged
            };
        };
        // Files were used under lower numbers before.
        let earlier = (u64::from_be_bytes(*found) >> 24).checked_sub(1).filter(|earlier| *earlier < number);
        match earlier {
            _ if *found == mark(number) => Sector::Written(room),
            _ if *found == [0; 8] => Sector::Unwritten,
            Some(earlier) if *found == mark(earlier) => Sector::Unwritten,
            _ => Sector::Damaged,
        }
    }
}

/// Writes bytes to sectors after the `tail` bytes that are there, marks each that holds something, and clears what follows.
pub(crate) fn write(sectors: &mut [u8], mark: Mark, tail: usize, bytes: &[u8]) {
    let (mut left, mut from) = (bytes, tail % ROOM);
    for sector in sectors.chunks_exact_mut(SECTOR).skip(tail / ROOM) {
        let (part, rest) = left.split_at(left.len().min(ROOM - from));
        let to = from + part.len();
        sector[from..to].copy_from_slice(part);
        sector[to..].fill(0);
        if to > 0 {
            sector[ROOM..].copy_from_slice(&mark);
        }
        (left, from) = (rest, 0);
    }
}

/// Whether there is nothing but zeros.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Where a byte is that comes after so many others.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn place(at: usize) -> usize {
    at / ROOM * SECTOR + at % ROOM
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in one sector, written for a file and read for another.
    fn found(bytes: &[u8], number: u64) -> &'static str {
        match Sector::read(bytes, number) {
            Sector::Written(_) => "written",
            Sector::Unwritten => "unwritten",
            Sector::Damaged => "damaged",
        }
    }

    #[test]
    fn a_sector_is_of_the_file_that_it_was_written_for_or_of_none() {
        let mut sector = [0; SECTOR];
        assert_eq!(found(&sector, 0), "unwritten");
        write(&mut sector, mark(7), 0, b"something");
        assert_eq!(Sector::read(&sector, 7), Sector::Written(&sector[..ROOM]));
        assert_eq!(
            [8, 900, 6, 0].map(|number| found(&sector, number)),
            ["unwritten", "unwritten", "damaged", "damaged"]
        );
        assert_eq!([found(&sector[..100], 7), found(&[0; 100], 7)], ["damaged", "unwritten"]);
        assert_eq!(found(&[0xff; SECTOR], u64::MAX), "damaged");
    }

    #[test]
    fn a_damaged_mark_is_no_other_mark() {
        for number in [0, 1, 7, 255, 256, 65_535, 1 << 30] {
            for bit in 0..64 {
                let mut sector = [0; SECTOR];
                write(&mut sector, mark(number), 0, b"something");
                sector[ROOM + bit / 8] ^= 1 << (bit % 8);
                assert_eq!(found(&sector, number), "damaged", "bit {bit} of {number}");
            }
        }
    }

    #[test]
    fn what_follows_is_clear_and_what_was_there_is_kept() {
        let mut sectors = [9; 4 * SECTOR];
        write(&mut sectors, mark(3), 0, &[1; 600]);
        write(&mut sectors, mark(3), 600, &[2; 500]);
        let read: Vec<u8> = sectors
            .chunks(SECTOR)
            .filter_map(|sector| match Sector::read(sector, 3) {
                Sector::Written(room) => Some(room),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        assert_eq!(read, [&[1; 600][..], &[2; 500], &[0; 3 * ROOM - 1_100]].concat());
        assert!(sectors[3 * SECTOR..] == [0; SECTOR] && sectors[place(1_099)] == 2 && sectors[place(599)] == 1);
    }
}
