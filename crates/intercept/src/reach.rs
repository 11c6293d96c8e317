// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ranks' memory as others read it in place: what libweft-heap.so shares of this process, and
//! mappings of what the others share (docs/shm-layout.md, clause 11). Made by agreement; read by
//! crates/collectives through [`Reach`].

use std::sync::{Mutex, OnceLock, PoisonError};

use weft_collectives::{Reach, Shown};
use weft_memory::remote_heap::{Lying, PLACES};
use weft_memory::{BytesView, Density, Offering, OwnHeap, RemoteHeap, UserBuffer};
use weft_os::heap::Heap;

/// What this process shares, and which places for ends of data its communicators have.
#[derive(Debug)]
struct Own {
    heap: OwnHeap,
    is_taken: Mutex<[bool; PLACES]>,
}

/// `None` if nothing is shared.
static OWN: OnceLock<Option<Own>> = OnceLock::new();

fn own() -> Option<&'static Own> {
    let find = || {
        Some(Own {
            heap: OwnHeap::find()?,
            is_taken: Mutex::new([false; PLACES]),
        })
    };
    OWN.get_or_init(find).as_ref()
}

/// What others need to read this process's memory; all zero if it shares none.
pub fn own_words() -> [u64; 4] {
    own().map_or([0; 4], |own| own.heap.shown().words())
}

/// A place for the ends of data, ours while this lives.
#[derive(Debug)]
struct Place(usize);

impl Place {
    fn take(own: &Own) -> Option<Self> {
        let mut is_taken = own.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = is_taken.iter().position(|is_taken| !is_taken)?;
        is_taken[free] = true;
        Some(Self(free))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(own) = own() {
            let mut is_taken = own.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
            is_taken[self.0] = false;
        }
    }
}

/// The memory of one communicator's ranks.
#[derive(Debug)]
pub struct Memories {
    own: &'static Own,
    place: Place,
    /// By rank; none for this one.
    others: Vec<Option<RemoteHeap>>,
    density: Density,
}

impl Memories {
    /// Maps what the ranks of these processes share, this one being number `rank`; `None` if one of
    /// them shares nothing, or cannot be mapped.
    pub fn map(rank: usize, ranks: impl Iterator<Item = (u32, [u64; 4])>) -> Option<Self> {
        let own = own()?;
        let map = |(at, (pid, words)): (usize, (u32, [u64; 4]))| {
            if at == rank {
                return Some(None);
            }
            let heap = Some(words).filter(|words| words != &[0; 4])?;
            RemoteHeap::map(pid, &Heap::of_words(heap)).ok().map(Some)
        };
        Some(Self {
            own,
            others: ranks.enumerate().map(map).collect::<Option<_>>()?,
            place: Place::take(own)?,
            density: Density::new(),
        })
    }

    /// What a call with so many bytes counts as an offer: itself, however long after the one before
    /// it comes, since without sharing it was tried in vain and goes to the MPI. Measured:
    /// docs/lab/2026-11-30-sharing-within-the-warm-up.md.
    fn offering(&mut self, length_bytes: usize) -> Offering {
        match self.own.heap.is_asked() {
            true => Offering::ONE,
            false => Offering::of(&mut self.density, length_bytes, true),
        }
    }
}

fn lying(shown: Shown) -> Lying {
    let Shown([address, length_bytes, place]) = shown;
    Lying {
        address,
        length_bytes,
        place,
    }
}

impl Reach for Memories {
    fn show(&mut self, bytes: BytesView<'_>) -> Option<Shown> {
        let length_bytes = bytes.length_bytes();
        // SAFETY: only read, and only while the call lasts, in which the bytes are the caller's.
        let data = unsafe { UserBuffer::from_raw(bytes.base().cast_mut(), length_bytes) };
        let Place(place) = self.place;
        let offering = self.offering(length_bytes);
        let is_shown =
            self.own.heap.offers(&data, offering) && self.own.heap.put_edges(&data, place);
        is_shown.then_some(Shown([
            data.address() as u64,
            length_bytes as u64,
            place as u64,
        ]))
    }

    fn prepare(&mut self, rank: usize, shown: Shown, offset_bytes: usize) -> usize {
        let memory = self.others.get_mut(rank).and_then(Option::as_mut);
        let count = memory.map_or(0, |memory| memory.reach(&lying(shown), offset_bytes as u64));
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    fn view(
        &self,
        rank: usize,
        shown: Shown,
        offset_bytes: usize,
        most_bytes: usize,
    ) -> BytesView<'_> {
        match self.others.get(rank).and_then(Option::as_ref) {
            Some(memory) => memory.view(&lying(shown), offset_bytes as u64, most_bytes),
            None => BytesView::from_slice(&[]),
        }
    }
}
