// SPDX-License-Identifier: Apache-2.0 OR MIT
//! This process's shared memory (docs/shm-layout.md, clause 11): asking whether a message lies
//! there, and putting its ends where a receiver finds them. Made by the provider; used by shm for
//! long messages.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use weft_os::heap::{self, Heap, Offer};
use weft_os::map::RawMap;

use crate::density::Density;
use crate::remote_heap::{PAGE_BYTES, PLACE_BYTES, PLACES};
use crate::view::BytesViewMut;
use crate::{UserBuffer, remote_heap};

/// What an offer of a message counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offering {
    /// For how many messages out of the same memory it stands; memory is not offered for 0.
    pub messages: u64,
    /// They followed each other closely, so that more are likely to come.
    pub are_close: bool,
}

impl Offering {
    /// One message, of which nothing else is known.
    pub const ONE: Self = Self {
        messages: 1,
        are_close: false,
    };

    /// That of a message which is about to be sent; it is noted in `density`. If it counts in any
    /// case it counts for itself.
    #[inline]
    pub fn of(density: &mut Density, length_bytes: usize, counts: bool) -> Self {
        let messages = density.note(length_bytes, Instant::now);
        Self {
            messages: if counts { 1 } else { messages },
            are_close: messages > 0,
        }
    }
}

/// Who knows what is shared.
#[derive(Clone, Debug)]
enum Judge {
    /// The preloaded library.
    Library(Offer),
    /// One buffer is, for good.
    Buffer { start: u64, end: u64 },
}

/// Our shared memory.
#[derive(Clone, Debug)]
pub struct OwnHeap {
    shown: Heap,
    judge: Judge,
    edges: Arc<RawMap>,
    is_asked: bool,
}

impl OwnHeap {
    /// That of the preloaded library, if it is there and has some. Setup.
    pub fn find() -> Option<Self> {
        let own = heap::own()?;
        let edges = heap::map_own_edges(&own.heap).ok()?;
        Some(Self {
            shown: own.heap,
            judge: Judge::Library(own.offer),
            edges: Arc::new(edges),
            is_asked: own.is_asked,
        })
    }

    /// What remotes are shown of it.
    pub fn shown(&self) -> Heap {
        self.shown
    }

    /// Whether the user asks to have memory shared, whether it pays or not.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// As if nobody had asked for it: for tests.
    #[must_use]
    pub fn not_asked(self) -> Self {
        Self {
            is_asked: false,
            ..self
        }
    }

    /// Notes that a message is offered to a remote that can map our memory; whether its whole pages
    /// are shared. Tens of nanoseconds, unless it is the time at which they become so.
    #[inline]
    pub fn offers(&self, message: &UserBuffer, offering: Offering) -> bool {
        let address = message.address() as u64;
        let length_bytes = message.length_bytes() as u64;
        match &self.judge {
            Judge::Library(offer) => {
                let are_close = u64::from(offering.are_close);
                offer(address, length_bytes, offering.messages, are_close) == 1
            }
            Judge::Buffer { start, end } => {
                *start <= address && address.saturating_add(length_bytes) <= *end
            }
        }
    }

    /// Puts what lies before and behind the whole pages of a message into a place, which is the
    /// caller's while the message is under way; false if there is no such place.
    pub fn put_edges(&self, message: &UserBuffer, place: usize) -> bool {
        let (address, length_bytes) = (message.address(), message.length_bytes());
        let (first, last) = remote_heap::edges(address as u64, length_bytes as u64);
        if first.is_empty() && last.is_empty() {
            return true;
        }
        if place >= PLACES {
            return false;
        }
        let base = self.edges.base().wrapping_add(place * PLACE_BYTES);
        let targets = [
            base.wrapping_add(address % PAGE_BYTES),
            base.wrapping_add(PAGE_BYTES),
        ];
        for (bytes, target) in [first, last].into_iter().zip(targets) {
            let length = (bytes.end - bytes.start) as usize;
            // SAFETY: either end is shorter than the page of the place that it comes to lie in.
            let mut view = unsafe { BytesViewMut::from_raw(target, length) };
            message.drain(bytes.start as usize, &mut view);
        }
        true
    }
}

/// Memory that is shared for good, and a buffer that is all of it, neither ever freed: for tests.
///
/// # Errors
/// The error of memfd_create(2) or mmap(2).
pub fn leaked(length_bytes: usize) -> io::Result<(OwnHeap, UserBuffer)> {
    use std::os::fd::AsFd;
    let (file, map) = heap::make(length_bytes)?;
    let shown = Heap::of_file(file.as_fd())?;
    let start = map.base() as u64;
    let own = OwnHeap {
        shown,
        judge: Judge::Buffer {
            start,
            end: start + length_bytes as u64,
        },
        edges: Arc::new(heap::map_own_edges(&shown)?),
        is_asked: true,
    };
    // SAFETY: the mapping lives as long as the process, and no reference to it remains.
    let buffer = unsafe { UserBuffer::from_raw(map.base(), length_bytes) };
    std::mem::forget(map);
    std::mem::forget(file);
    Ok((own, buffer))
}
