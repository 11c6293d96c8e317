// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ranks' blocks in one buffer of a program, with lengths and places of their own: what the v-
//! and w-forms of collectives take. Called by movement, exchange and reduction. Source: MPI 4.1,
//! 6.5 to 6.8.

use std::ffi::{c_int, c_void};

use weft_collectives::Block;

use crate::buffers::{Bytes, Checked, Element, LONGEST_BYTES};
use crate::mpi::Mpi;
use crate::outcome::Stop;

/// Counts or displacements as a program passes them.
#[derive(Clone, Copy, Debug)]
pub enum List {
    /// C `int`s.
    Narrow(*const c_int),
    /// `MPI_Count`s, or `MPI_Aint`s.
    Wide(*const i64),
}

impl From<*const c_int> for List {
    fn from(list: *const c_int) -> Self {
        Self::Narrow(list)
    }
}

impl From<*const i64> for List {
    fn from(list: *const i64) -> Self {
        Self::Wide(list)
    }
}

impl List {
    /// Number `at`; 0 where there is no list.
    ///
    /// # Safety
    /// A list must have so many.
    #[inline]
    pub unsafe fn get(self, at: usize) -> i64 {
        match self {
            Self::Narrow(list) if list.is_null() => 0,
            Self::Wide(list) if list.is_null() => 0,
            // SAFETY: the caller's promise.
            Self::Narrow(list) => i64::from(unsafe { *list.add(at) }),
            // SAFETY: as above.
            Self::Wide(list) => unsafe { *list.add(at) },
        }
    }
}

/// The datatypes of blocks.
#[derive(Clone, Copy, Debug)]
pub enum Kinds {
    /// One for all; displacements count its elements.
    One(usize),
    /// The address of an array of handles; displacements are bytes.
    Each(*const c_void),
}

/// Blocks as a program describes them.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// What displacements are counted from.
    pub address: *mut c_void,
    /// Elements of each rank's block.
    pub counts: List,
    /// Where each begins.
    pub places: List,
    /// What they are made of.
    pub kinds: Kinds,
}

impl Described {
    /// What they are to this MPI.
    ///
    /// # Errors
    /// [`Stop::Left`] if they are for the MPI to refuse, or too long.
    ///
    /// # Safety
    /// The lists must have an entry for each of so many ranks.
    pub unsafe fn checked(&self, mpi: &Mpi, ranks: usize) -> Result<Parts, Stop> {
        let common = match self.kinds {
            Kinds::One(kind) => {
                let element = Element::of(mpi, kind)?;
                Some((element, element.stride_bytes(mpi)?))
            }
            Kinds::Each(_) => None,
        };
        let mut pieces = Vec::with_capacity(ranks);
        for rank in 0..ranks {
            let (element, stride_bytes) = match (common, self.kinds) {
                (Some(common), _) => common,
                // SAFETY: the caller's promise.
                (None, Kinds::Each(list)) => unsafe {
                    (Element::of(mpi, mpi.handle_at(list, rank))?, 1)
                },
                (None, Kinds::One(_)) => return Err(Stop::Left),
            };
            // SAFETY: as above.
            let (count, place) = unsafe { (self.counts.get(rank), self.places.get(rank)) };
            let offset_bytes = place.checked_mul(stride_bytes).ok_or(Stop::Left)?;
            let address = self.address.wrapping_byte_offset(offset_bytes as isize);
            pieces.push(element.times(address, count)?);
        }
        Parts::of(pieces)
    }
}

/// Blocks that can be served.
#[derive(Debug)]
pub struct Parts {
    pieces: Vec<Checked>,
    /// Where they lie in the bytes.
    pub blocks: Vec<Block>,
    /// Where the bytes are, if none must be packed.
    base: Option<*mut u8>,
    length_bytes: usize,
}

impl Parts {
    fn of(pieces: Vec<Checked>) -> Result<Self, Stop> {
        let full = || pieces.iter().filter(|piece| piece.bytes > 0);
        let total_bytes: usize = full().map(|piece| piece.bytes).sum();
        if total_bytes > LONGEST_BYTES {
            return Err(Stop::Left);
        }
        let is_plain = full().all(Checked::is_plain);
        let base = full().map(Checked::base).min().filter(|_| is_plain);
        let mut blocks = Vec::with_capacity(pieces.len());
        let (mut packed_bytes, mut length_bytes) = (0, 0);
        for piece in &pieces {
            let offset_bytes = match base {
                Some(base) if piece.bytes > 0 => piece.base().addr() - base.addr(),
                Some(_) => 0,
                None => packed_bytes,
            };
            packed_bytes += piece.bytes;
            length_bytes = length_bytes.max(offset_bytes + piece.bytes);
            blocks.push(Block {
                offset_bytes,
                length_bytes: piece.bytes,
            });
        }
        Ok(Self {
            pieces,
            blocks,
            base,
            length_bytes,
        })
    }

    /// Bytes of the longest block.
    pub fn longest_bytes(&self) -> usize {
        let lengths = self.pieces.iter().map(|piece| piece.bytes);
        lengths.max().unwrap_or(0)
    }

    /// Bytes of the shortest block that is not empty; 0 if all are.
    pub fn shortest_bytes(&self) -> usize {
        let lengths = self.pieces.iter().map(|piece| piece.bytes);
        lengths.filter(|&bytes| bytes > 0).min().unwrap_or(0)
    }

    /// Whether the bytes lie in the program's buffer as they are, so that none are packed.
    pub fn is_plain(&self) -> bool {
        self.base.is_some()
    }

    /// Whether others may read the blocks where they lie: none must be packed, and no bytes lie
    /// between them. Those bytes the program may change during the call, when their pages may
    /// become shared.
    pub fn can_be_shown(&self) -> bool {
        self.length_bytes == 0 || (self.is_plain() && !self.have_gaps())
    }

    fn have_gaps(&self) -> bool {
        let mut ranges: Vec<_> = self.full().map(|(_, range)| range).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut end = 0;
        ranges.into_iter().any(|range| {
            let is_behind_gap = range.start > end;
            end = end.max(range.end);
            is_behind_gap
        })
    }

    /// The bytes, to be read.
    ///
    /// # Errors
    /// [`Stop::Code`].
    ///
    /// # Safety
    /// The blocks must be readable as they are described.
    pub unsafe fn read(&self, mpi: &Mpi) -> Result<Bytes, Stop> {
        if let Some(base) = self.base {
            return Ok(Bytes::InPlace(base, self.length_bytes));
        }
        let mut copy = vec![0u8; self.length_bytes];
        for (piece, block) in self.full() {
            // SAFETY: the caller's promise.
            unsafe { piece.pack(mpi, &mut copy[block])? };
        }
        Ok(Bytes::Copy(copy))
    }

    /// Room for the bytes, which [`Self::written`] puts where they belong.
    pub fn room(&self) -> Bytes {
        match self.base {
            Some(base) => Bytes::InPlace(base, self.length_bytes),
            None => Bytes::Copy(vec![0u8; self.length_bytes]),
        }
    }

    /// Puts the bytes that were written into the room where they belong.
    ///
    /// # Errors
    /// [`Stop::Code`].
    ///
    /// # Safety
    /// The blocks must be writable as they are described.
    pub unsafe fn written(&self, mpi: &Mpi, room: &Bytes) -> Result<(), Stop> {
        let Bytes::Copy(copy) = room else {
            return Ok(());
        };
        for (piece, block) in self.full() {
            // SAFETY: the caller's promise.
            unsafe { piece.unpack(mpi, &copy[block])? };
        }
        Ok(())
    }

    /// Blocks that are not empty, and where they lie in the bytes.
    fn full(&self) -> impl Iterator<Item = (&Checked, std::ops::Range<usize>)> {
        let range = |block: &Block| block.offset_bytes..block.offset_bytes + block.length_bytes;
        let all = self.pieces.iter().zip(&self.blocks);
        all.filter(|(piece, _)| piece.bytes > 0)
            .map(move |(piece, block)| (piece, range(block)))
    }
}
