// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The buffer of a fi_send or fi_recv call: one piece of memory nearly always, a short list of
//! pieces else.
//!
//! Made in the provider; filled and drained by transports and by the endpoint.

use crate::copy::{copy, copy_non_temporal};
use crate::view::{BytesView, BytesViewMut};

/// How many pieces a buffer may have (the provider's iov_limit). Chosen: what MPIs and fabtests
/// use.
pub const IOV_LIMIT: usize = 8;

/// Bytes of a cache line. Specified by x86-64 processors; others only lose some speed by it.
const LINE_BYTES: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Piece {
    base: *mut u8,
    length_bytes: usize,
}

/// A user's buffer. Cheap to move; [`UserBuffer::clone`] allocates only for buffers of several
/// pieces.
#[derive(Clone, Debug)]
pub struct UserBuffer {
    /// The only piece; with several pieces, the base of the first one.
    base: *mut u8,
    /// The length of all pieces together.
    length_bytes: usize,
    /// All pieces, if there is more than one.
    pieces: Option<Box<[Piece]>>,
}

// SAFETY: the constructors' contract lends the memory to whoever holds the value until completion,
// not to one thread; libfabric lets completions be reaped on another thread than the one that
// posted.
unsafe impl Send for UserBuffer {}

impl UserBuffer {
    /// A buffer of no bytes.
    pub const fn empty() -> Self {
        Self {
            base: core::ptr::null_mut(),
            length_bytes: 0,
            pieces: None,
        }
    }

    /// One piece. Fast path.
    ///
    /// # Safety
    /// `base` must be valid for `length_bytes` (readable for sends, writable for receives) until
    /// the operation's completion is written, and nothing else may touch it meanwhile (fi_msg(3)).
    /// `base` may be null if `length_bytes` is 0.
    #[inline(always)]
    pub const unsafe fn from_raw(base: *mut u8, length_bytes: usize) -> Self {
        Self {
            base,
            length_bytes,
            pieces: None,
        }
    }

    /// Several pieces, in order. Allocates if more than one is not empty.
    ///
    /// # Safety
    /// As [`Self::from_raw`], for every piece.
    pub unsafe fn from_pieces(pieces: impl Iterator<Item = (*mut u8, usize)>) -> Self {
        let pieces: Vec<Piece> = pieces
            .filter(|&(_, length_bytes)| length_bytes > 0)
            .map(|(base, length_bytes)| Piece { base, length_bytes })
            .collect();
        match pieces[..] {
            [] => Self::empty(),
            [only] => Self {
                base: only.base,
                length_bytes: only.length_bytes,
                pieces: None,
            },
            _ => Self {
                base: pieces[0].base,
                length_bytes: pieces.iter().map(|piece| piece.length_bytes).sum(),
                pieces: Some(pieces.into_boxed_slice()),
            },
        }
    }

    /// Fresh zeroed memory, one piece for each length, that is never freed: for tests and self
    /// checks, which can then do without `unsafe`. Read it with [`Self::drain`], write it with
    /// [`Self::fill`]; if two threads do so at once, the bytes are a mix, as with shared memory.
    /// [`Self::show`] it only while none writes.
    pub fn leaked(piece_lengths_bytes: &[usize]) -> Self {
        let fresh =
            |&length_bytes: &usize| (vec![0_u8; length_bytes].leak().as_mut_ptr(), length_bytes);
        // SAFETY: the memory lives as long as the process, and no reference to it remains.
        unsafe { Self::from_pieces(piece_lengths_bytes.iter().map(fresh)) }
    }

    /// As [`Self::leaked`], in one piece that lies in a shared file.
    ///
    /// # Errors
    /// The error of memfd_create(2) or mmap(2).
    pub fn leaked_shared(length_bytes: usize) -> std::io::Result<Self> {
        let file = weft_os::region_file::create_memfd("weft-leaked", length_bytes as u64)?;
        let map = weft_os::map::RawMap::new(std::os::fd::AsFd::as_fd(&file), length_bytes)?;
        let base = map.base();
        std::mem::forget(map);
        // SAFETY: the mapping lives as long as the process, and no reference to it remains.
        Ok(unsafe { Self::from_raw(base, length_bytes) })
    }

    /// The length of the whole buffer.
    #[inline(always)]
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// The address of its first byte, as the completion of a multi-receive names it.
    #[inline]
    pub fn address(&self) -> usize {
        self.base as usize
    }

    /// Whether the buffer is one stretch of memory.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.pieces.is_none()
    }

    /// Copies `payload` in at `offset_bytes`, as far as the buffer reaches; answers how many bytes
    /// that was. Fast path.
    #[inline(always)]
    pub fn fill(&self, offset_bytes: usize, payload: BytesView<'_>) -> usize {
        let room = self.length_bytes.saturating_sub(offset_bytes);
        let count = payload.length_bytes().min(room);
        if self.pieces.is_none() {
            // SAFETY: offset + count is within the buffer, which is ours to write (constructor);
            // the payload is readable for count; user memory and shared or heap payload do not
            // overlap.
            unsafe { copy(payload.base(), self.base.wrapping_add(offset_bytes), count) };
        } else {
            self.fill_pieces(offset_bytes, payload, count);
        }
        count
    }

    /// As [`Self::fill`], with non-temporal stores: for payload that is longer than the cache, of
    /// which each line of the target would otherwise be read before it is written.
    #[inline]
    pub fn fill_non_temporal(&self, offset_bytes: usize, payload: BytesView<'_>) -> usize {
        if self.pieces.is_some() {
            return self.fill(offset_bytes, payload);
        }
        let to_line = self
            .base
            .wrapping_add(offset_bytes)
            .align_offset(LINE_BYTES);
        let (head, rest) = payload.split_at(to_line);
        let head_bytes = self.fill(offset_bytes, head);
        let offset_bytes = offset_bytes + head_bytes;
        let room = self.length_bytes.saturating_sub(offset_bytes);
        let count = rest.length_bytes().min(room);
        // SAFETY: offset + count is within the buffer, which is ours to write (constructor); the
        // payload is readable for count; user memory and shared or heap payload do not overlap.
        unsafe { copy_non_temporal(rest.base(), self.base.wrapping_add(offset_bytes), count) };
        head_bytes + count
    }

    #[cold]
    fn fill_pieces(&self, offset_bytes: usize, payload: BytesView<'_>, count: usize) {
        let mut done = 0;
        self.for_each_piece(offset_bytes, count, |address, length| {
            // SAFETY: for_each_piece gives stretches inside the buffer, ours to write, that add up
            // to count, and count is at most the payload's length.
            unsafe { copy(payload.base().add(done), address as *mut u8, length) };
            done += length;
        });
    }

    /// Copies from `offset_bytes` out into `target`, as far as both reach; answers how many bytes
    /// that was. Fast path.
    #[inline(always)]
    pub fn drain(&self, offset_bytes: usize, target: &mut BytesViewMut<'_>) -> usize {
        let left = self.length_bytes.saturating_sub(offset_bytes);
        let count = target.length_bytes().min(left);
        if self.pieces.is_none() {
            // SAFETY: offset + count is within the buffer, readable until completion (constructor);
            // the target is writable for count and lies in shared memory or on our heap, never in
            // the buffer.
            unsafe { copy(self.base.wrapping_add(offset_bytes), target.base(), count) };
        } else {
            self.drain_pieces(offset_bytes, target, count);
        }
        count
    }

    /// As [`Self::drain`], with non-temporal stores: for long payload that another processor reads
    /// next.
    #[inline]
    pub fn drain_non_temporal(&self, offset_bytes: usize, target: &mut BytesViewMut<'_>) -> usize {
        let left = self.length_bytes.saturating_sub(offset_bytes);
        let count = target.length_bytes().min(left);
        if self.pieces.is_some() {
            return self.drain(offset_bytes, target);
        }
        // SAFETY: offset + count is within the buffer, readable until completion (constructor); the
        // target is writable for count and lies in shared memory or on our heap, never in the
        // buffer.
        unsafe { copy_non_temporal(self.base.wrapping_add(offset_bytes), target.base(), count) };
        count
    }

    #[cold]
    fn drain_pieces(&self, offset_bytes: usize, target: &mut BytesViewMut<'_>, count: usize) {
        let mut done = 0;
        self.for_each_piece(offset_bytes, count, |address, length| {
            // SAFETY: for_each_piece gives stretches inside the buffer that add up to count, and
            // count is at most the target's length.
            unsafe { copy(address as *const u8, target.base().add(done), length) };
            done += length;
        });
    }

    /// Calls `visit(address, length_bytes)` for each stretch of memory that holds the bytes from
    /// `offset_bytes` on, `length_bytes` of them at most. For single copy by address.
    pub fn for_each_piece(
        &self,
        offset_bytes: usize,
        length_bytes: usize,
        mut visit: impl FnMut(usize, usize),
    ) {
        let whole = [Piece {
            base: self.base,
            length_bytes: self.length_bytes,
        }];
        let pieces = self.pieces.as_deref().unwrap_or(&whole);
        let (mut skip, mut left) = (offset_bytes, length_bytes);
        for piece in pieces {
            if skip >= piece.length_bytes {
                skip -= piece.length_bytes;
                continue;
            }
            let count = (piece.length_bytes - skip).min(left);
            if count == 0 {
                return;
            }
            visit(piece.base as usize + skip, count);
            skip = 0;
            left -= count;
        }
    }

    /// Shows up to `length_bytes` from `offset_bytes` on where they lie, stretch by stretch: of a
    /// buffer that is being sent, which nobody may write to until it is (fi_msg(3)), and not of
    /// memory that one-sided operations reach. Fast path.
    #[inline]
    pub fn show(&self, offset_bytes: usize, length_bytes: usize, see: &mut dyn FnMut(&[u8])) {
        self.for_each_piece(offset_bytes, length_bytes, |address, length_bytes| {
            // SAFETY: the stretch lies inside the buffer, which is readable until its completion
            // and which nobody writes to before (constructor, and the caller's choice of buffers).
            see(unsafe { core::slice::from_raw_parts(address as *const u8, length_bytes) });
        });
    }

    /// Copies this buffer to `target` at `offset_bytes`, as far as both reach; answers how many
    /// bytes that was. The two must not overlap in part: what lands is then unspecified.
    #[inline]
    pub fn copy_to(&self, target: &Self, offset_bytes: usize) -> usize {
        if self.pieces.is_none() {
            // SAFETY: the buffer is ours to read (constructor).
            let whole = unsafe { BytesView::from_raw(self.base, self.length_bytes) };
            return target.fill(offset_bytes, whole);
        }
        let mut done = 0;
        self.for_each_piece(0, self.length_bytes, |address, length_bytes| {
            // SAFETY: the stretch lies in this buffer, which is ours to read (constructor).
            let piece = unsafe { BytesView::from_raw(address as *const u8, length_bytes) };
            done += target.fill(offset_bytes + done, piece);
        });
        done
    }

    /// Several buffers one after the other as one. Allocates if more than one is not empty.
    pub fn joined<'a>(buffers: impl Iterator<Item = &'a Self>) -> Self {
        let mut pieces = Vec::new();
        for buffer in buffers {
            buffer.for_each_piece(0, buffer.length_bytes, |address, length_bytes| {
                pieces.push((address as *mut u8, length_bytes))
            });
        }
        // SAFETY: the pieces are those of the buffers, whose contract they inherit.
        unsafe { Self::from_pieces(pieces.into_iter()) }
    }

    /// The stretch of `length_bytes` at `offset_bytes` as a buffer of its own (for multi-receive);
    /// shorter if the buffer ends before. Allocates only for buffers of several pieces.
    #[inline]
    pub fn part(&self, offset_bytes: usize, length_bytes: usize) -> Self {
        if self.pieces.is_none() {
            let skipped_bytes = offset_bytes.min(self.length_bytes);
            return Self {
                base: self.base.wrapping_add(skipped_bytes),
                length_bytes: length_bytes.min(self.length_bytes - skipped_bytes),
                pieces: None,
            };
        }
        let mut pieces = Vec::new();
        self.for_each_piece(offset_bytes, length_bytes, |address, length| {
            pieces.push((address as *mut u8, length))
        });
        // SAFETY: the pieces lie inside this buffer, whose contract they inherit; the caller uses
        // each part for one message only, as the buffer itself is borrowed shared.
        unsafe { Self::from_pieces(pieces.into_iter()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_over(parts: &mut [Vec<u8>]) -> UserBuffer {
        // SAFETY: the vectors outlive the buffer in each test and are only touched through it
        // meanwhile.
        unsafe {
            UserBuffer::from_pieces(parts.iter_mut().map(|part| (part.as_mut_ptr(), part.len())))
        }
    }

    #[test]
    fn a_scattered_buffer_fills_in_order_and_stops_at_its_end() {
        let mut parts = [vec![0; 3], vec![], vec![0; 5], vec![0; 2]];
        let buffer = buffer_over(&mut parts);
        assert_eq!(buffer.length_bytes(), 10);
        assert_eq!(
            buffer.fill(2, BytesView::from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9])),
            8
        );
        assert_eq!(parts.concat(), [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn draining_gives_back_what_filling_put_in() {
        let mut parts = [vec![9; 4], vec![8; 4]];
        let buffer = buffer_over(&mut parts);
        let mut out = [0; 8];
        assert_eq!(
            buffer.drain(3, &mut BytesViewMut::from_slice(&mut out[..3])),
            3
        );
        assert_eq!(out, [9, 8, 8, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_part_names_the_same_bytes() {
        let mut parts = [vec![0; 4], vec![0; 4]];
        let buffer = buffer_over(&mut parts);
        let part = buffer.part(2, 4);
        assert_eq!(part.length_bytes(), 4);
        part.fill(0, BytesView::from_slice(&[1, 2, 3, 4]));
        assert_eq!(parts.concat(), [0, 0, 1, 2, 3, 4, 0, 0]);
    }

    #[test]
    fn leaked_memory_keeps_what_is_written_across_its_pieces() {
        let buffer = UserBuffer::leaked(&[3, 0, 4]);
        assert_eq!((buffer.length_bytes(), buffer.is_contiguous()), (7, false));
        assert_eq!(
            buffer.fill(0, BytesView::from_slice(&[1, 2, 3, 4, 5, 6, 7, 8])),
            7
        );
        let mut read = [0; 7];
        buffer.drain(0, &mut BytesViewMut::from_slice(&mut read));
        assert_eq!(read, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_joined_buffer_is_its_parts_one_after_the_other() {
        let mut parts = [vec![1, 2], vec![3], vec![4, 5, 6]];
        let whole = buffer_over(&mut parts);
        let swapped =
            UserBuffer::joined([whole.part(3, 3), whole.part(0, 0), whole.part(0, 3)].iter());
        let target = UserBuffer::leaked(&[4, 3]);
        assert_eq!(swapped.copy_to(&target, 1), 6);
        let mut read = [9; 7];
        target.drain(0, &mut BytesViewMut::from_slice(&mut read));
        assert_eq!(read, [0, 4, 5, 6, 1, 2, 3]);
        assert_eq!(swapped.copy_to(&target, 5), 2, "as far as there is room");
    }

    #[test]
    fn what_is_shown_is_what_lies_there_piece_by_piece_as_far_as_the_buffer_reaches() {
        let buffer = UserBuffer::leaked(&[3, 0, 4]);
        buffer.fill(0, BytesView::from_slice(&[1, 2, 3, 4, 5, 6, 7]));
        let mut seen = Vec::new();
        buffer.show(1, 9, &mut |part| seen.push(part.to_vec()));
        assert_eq!(seen, [vec![2, 3], vec![4, 5, 6, 7]]);
    }

    #[test]
    fn filling_past_the_end_copies_nothing() {
        let buffer = UserBuffer::empty();
        assert_eq!(buffer.fill(5, BytesView::from_slice(&[1])), 0);
    }
}
