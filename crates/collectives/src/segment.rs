// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A communicator's shared memory: each rank's flags, its progress, its staging
//! (docs/collectives.md, clause 2). Used by exchange.rs.
//!
//! No number read here is ever used as an address, an index or a length: what another rank writes
//! can make a result wrong or a call fail, and nothing else.

use core::ptr::NonNull;

use weft_memory::{BytesView, BytesViewMut};

use crate::layout::{FLAG_COUNT, FLAG_WORDS, STAGE_BYTES, STAGE_STRIDE_BYTES, stages_offset};
use crate::sync::Word;

/// What one rank publishes in one step. A pair of lines of its own, since processors fetch pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Flag {
    /// Which step and which call this is; written last.
    pub(crate) mark: Word,
    /// Short data.
    pub(crate) words: [Word; FLAG_WORDS],
}

/// How far a rank is, for those who want to use flags again. A pair of lines of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Progress {
    /// The last step after which the rank reads no flag of that step or an earlier one.
    pub(crate) done: Word,
    /// The mark of a step in which the rank has waited long, or [`GIVEN_UP`].
    pub(crate) waits: Word,
    /// The step that stands for the last call that the rank left to the MPI for its length.
    pub(crate) left: Word,
}

/// What `waits` says of a rank that makes no call any more: ranks differ, or it cannot go on.
pub(crate) const GIVEN_UP: u64 = u64::MAX;

/// The control page of a rank; only that rank writes it.
#[repr(C, align(4096))]
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) progress: Progress,
    flags: [Flag; FLAG_COUNT],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() == crate::layout::CONTROL_BYTES);
#[cfg(not(loom))]
const _: () = assert!(size_of::<Flag>() == 128);

/// The segment of one communicator, as one rank sees it.
#[derive(Debug)]
pub(crate) struct Segment {
    controls: NonNull<Control>,
    stages: NonNull<u8>,
    ranks: usize,
}

// SAFETY: the pointers belong to the process, not to a thread; shared words are atomic.
unsafe impl Send for Segment {}

impl Segment {
    /// # Safety
    /// `base` must be mapped, readable and writable, for `segment_bytes(ranks)` bytes as long as
    /// the value lives, begin with a page, and have been all zero once. Other processes may write
    /// it; no Rust reference to it may exist but through other values of this type.
    pub(crate) unsafe fn new(base: NonNull<u8>, ranks: usize) -> Self {
        Self {
            controls: base.cast(),
            // SAFETY: the stages begin inside the segment.
            stages: unsafe { base.add(stages_offset(ranks)) },
            ranks,
        }
    }

    /// The control page of a rank.
    ///
    /// # Panics
    /// If there is no such rank; ranks are checked where they enter.
    #[inline(always)]
    pub(crate) fn control(&self, rank: usize) -> &Control {
        assert!(rank < self.ranks, "a team has {} ranks", self.ranks);
        // SAFETY: the segment has a control page for each rank, and the rank was just checked; all
        // its fields are atomic, and any bytes are valid in them.
        unsafe { self.controls.add(rank).as_ref() }
    }

    /// The flag of a rank in a step.
    #[inline(always)]
    pub(crate) fn flag(&self, rank: usize, step: u64) -> &Flag {
        &self.control(rank).flags[step as usize % FLAG_COUNT]
    }

    /// A part of what a rank staged in a step.
    #[inline]
    pub(crate) fn staged(&self, rank: usize, step: u64, part: Part) -> BytesView<'_> {
        let base = self.stage(rank, step, part);
        // SAFETY: `stage` has checked that the part lies in the segment, which is readable.
        unsafe { BytesView::from_raw(base, part.length_bytes) }
    }

    /// The same to write; only our own. Two views of one part may exist, as the part may be changed
    /// by others at any time anyway; who makes both must not copy one onto the other.
    #[inline]
    pub(crate) fn stage_mut(&self, rank: usize, step: u64, part: Part) -> BytesViewMut<'_> {
        let base = self.stage(rank, step, part);
        // SAFETY: `stage` has checked that the part lies in the segment, which is writable; no
        // references to it are made.
        unsafe { BytesViewMut::from_raw(base, part.length_bytes) }
    }

    #[inline]
    fn stage(&self, rank: usize, step: u64, part: Part) -> *mut u8 {
        assert!(rank < self.ranks, "a team has {} ranks", self.ranks);
        let end = part.offset_bytes.checked_add(part.length_bytes);
        assert!(
            end.is_some_and(|end| end <= STAGE_BYTES),
            "a flag stages {STAGE_BYTES} bytes"
        );
        let flag = rank * FLAG_COUNT + step as usize % FLAG_COUNT;
        let offset = flag * STAGE_STRIDE_BYTES + part.offset_bytes;
        self.stages.as_ptr().wrapping_add(offset)
    }
}

/// A part of a flag's staging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) offset_bytes: usize,
    pub(crate) length_bytes: usize,
}

impl Part {
    /// The first so many bytes.
    pub(crate) fn first(length_bytes: usize) -> Self {
        Self {
            offset_bytes: 0,
            length_bytes,
        }
    }

    /// What is left behind so many bytes.
    #[inline]
    pub(crate) fn behind(self, skipped_bytes: usize) -> Self {
        let skipped_bytes = skipped_bytes.min(self.length_bytes);
        Self {
            offset_bytes: self.offset_bytes + skipped_bytes,
            length_bytes: self.length_bytes - skipped_bytes,
        }
    }

    /// These bytes of a buffer.
    #[inline]
    pub(crate) fn of(self, buffer: BytesView<'_>) -> BytesView<'_> {
        buffer.part(self.offset_bytes, self.length_bytes)
    }

    /// These bytes of a buffer, to be written.
    #[inline]
    pub(crate) fn of_mut<'a>(self, buffer: &'a mut BytesViewMut<'_>) -> BytesViewMut<'a> {
        buffer.part(self.offset_bytes, self.length_bytes)
    }
}

/// Memory for the models, which cannot have atomics of loom in zeroed memory.
#[cfg(loom)]
pub(crate) mod model {
    use std::cell::RefCell;
    use std::mem::ManuallyDrop;

    use super::*;

    thread_local! {
        /// What the last execution of this thread's model shared. Models make many executions, all
        /// on one thread, one after the other, and each shares one segment.
        static LAST: RefCell<Option<(Vec<ManuallyDrop<Control>>, Vec<u8>)>> =
            const { RefCell::new(None) };
    }

    /// What the ranks of a model share. Valid until the next one is made.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Shared {
        controls: NonNull<Control>,
        stages: NonNull<u8>,
        ranks: usize,
    }

    // SAFETY: memory that outlives the execution, as in `Segment`.
    unsafe impl Send for Shared {}

    impl Shared {
        pub(crate) fn new(ranks: usize) -> Self {
            let flag = |_| Flag {
                mark: Word::zero(),
                words: core::array::from_fn(|_| Word::zero()),
            };
            let control = || Control {
                progress: Progress {
                    done: Word::zero(),
                    waits: Word::zero(),
                    left: Word::zero(),
                },
                flags: core::array::from_fn(flag),
            };
            // Loom knows its words no longer when the next execution frees them.
            let controls = (0..ranks).map(|_| ManuallyDrop::new(control()));
            let mut controls: Vec<_> = controls.collect();
            let mut stages = vec![0_u8; ranks * FLAG_COUNT * STAGE_STRIDE_BYTES];
            let shared = Self {
                controls: NonNull::from(controls.as_mut_slice()).cast(),
                stages: NonNull::from(stages.as_mut_slice()).cast(),
                ranks,
            };
            LAST.replace(Some((controls, stages)));
            shared
        }

        pub(crate) fn segment(self) -> Segment {
            Segment {
                controls: self.controls,
                stages: self.stages,
                ranks: self.ranks,
            }
        }
    }
}
