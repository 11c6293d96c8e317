// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations on the user's memory, element by element. Called by the endpoint for the
//! target of a remote atomic; the arithmetic is element.rs. fi_atomic(3).
//!
//! Elements of up to 8 bytes that lie at a multiple of their size are changed by the processor's
//! compare-and-swap, so that threads of the user which use atomics themselves see each change
//! whole. Others, and those of 16 bytes, are changed under a lock of this process: atomic among
//! remote atomics, which is all that the man page promises.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::element::combine;
use crate::{BytesView, BytesViewMut, Element, Operator, UserBuffer};

/// Bytes of the largest element.
const LARGEST_BYTES: usize = 16;

/// Guards the elements that no instruction changes at once.
static AWKWARD: Mutex<()> = Mutex::new(());

/// What to do to each element of a target.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The operation.
    pub operator: Operator,
    /// The type of the elements.
    pub element: Element,
    /// An operand for each element; empty for [`Operator::Read`].
    pub operands: &'a [u8],
    /// A comparand for each element; empty unless the operation compares.
    pub comparands: &'a [u8],
}

impl Change<'_> {
    /// Whether every element of `target` is changed by processor instructions, so that other
    /// processes which map the memory may change it at the same time.
    #[inline]
    pub fn is_at_once(&self, target: &UserBuffer) -> bool {
        let size = self.element.size_bytes();
        size <= size_of::<u64>() && target.is_contiguous() && target.address().is_multiple_of(size)
    }
}

/// Changes every element of `target`, in order, and stores what each one was before in `before`, as
/// far as that reaches. Operands that are missing count as 0.
pub fn apply(change: &Change<'_>, target: &UserBuffer, before: &mut [u8]) {
    let size = change.element.size_bytes();
    for (index, offset) in (0..target.length_bytes() / size)
        .map(|index| (index, index * size))
        .take_while(|(_, offset)| offset + size <= target.length_bytes())
    {
        let operand = bits_at(change.operands, index, size);
        let comparand = bits_at(change.comparands, index, size);
        let new = |old| combine(change.operator, change.element, old, operand, comparand);
        let old = update(target, offset, size, new);
        if let Some(place) = before.get_mut(offset..offset + size) {
            place.copy_from_slice(&old.to_le_bytes()[..size]);
        }
    }
}

/// The element of this index, as low bytes.
#[inline(always)]
fn bits_at(elements: &[u8], index: usize, size: usize) -> u128 {
    let mut bytes = [0; LARGEST_BYTES];
    if let Some(element) = elements.get(index * size..(index + 1) * size) {
        bytes[..size].copy_from_slice(element);
    }
    u128::from_le_bytes(bytes)
}

/// Replaces one element by what `new` makes of it; answers what it was.
#[inline(always)]
fn update(
    target: &UserBuffer,
    offset: usize,
    size: usize,
    new: impl Fn(u128) -> Option<u128>,
) -> u128 {
    let (mut address, mut stretch) = (target.address() + offset, size);
    if !target.is_contiguous() {
        target.for_each_piece(offset, size, |piece, length| {
            (address, stretch) = (piece, length);
        });
    }
    if stretch != size || address % size != 0 {
        return update_locked(target, offset, size, new);
    }
    macro_rules! with {
        ($atomic:ident, $bits:ident) => {{
            // SAFETY: the address lies in the user's buffer, which is ours to read and write, is a
            // multiple of the type's size, and holds a whole element; whoever else touches it
            // meanwhile does so atomically, or the result is as undefined for it as fi_atomic(3)
            // says.
            let cell = unsafe { $atomic::from_ptr(address as *mut $bits) };
            let made = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                new(u128::from(old)).map(|new| new as $bits)
            });
            u128::from(made.unwrap_or_else(|kept| kept))
        }};
    }
    match size {
        1 => with!(AtomicU8, u8),
        2 => with!(AtomicU16, u16),
        4 => with!(AtomicU32, u32),
        8 => with!(AtomicU64, u64),
        _ => update_locked(target, offset, size, new),
    }
}

#[cold]
fn update_locked(
    target: &UserBuffer,
    offset: usize,
    size: usize,
    new: impl Fn(u128) -> Option<u128>,
) -> u128 {
    let _guard = AWKWARD.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bytes = [0; LARGEST_BYTES];
    target.drain(offset, &mut BytesViewMut::from_slice(&mut bytes[..size]));
    let old = u128::from_le_bytes(bytes);
    if let Some(new) = new(old) {
        target.fill(offset, BytesView::from_slice(&new.to_le_bytes()[..size]));
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(buffer: &UserBuffer) -> Vec<u8> {
        let mut bytes = vec![0; buffer.length_bytes()];
        buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        bytes
    }

    fn sum_of_bytes<'a>(element: Element, operands: &'a [u8]) -> Change<'a> {
        Change {
            operator: Operator::Sum,
            element,
            operands,
            comparands: &[],
        }
    }

    #[test]
    fn every_size_is_changed_at_every_alignment_and_nothing_beside_it() {
        for (element, size) in [
            (Element::U8, 1),
            (Element::U16, 2),
            (Element::U32, 4),
            (Element::U64, 8),
            (Element::U128, 16),
        ] {
            for skew in 0..16 {
                let room = UserBuffer::leaked(&[128]);
                room.fill(0, BytesView::from_slice(&[7; 128]));
                let target = room.part(16 + skew, 3 * size);
                let mut operands = vec![0; 3 * size];
                operands.iter_mut().step_by(size).for_each(|low| *low = 5);
                let mut before = vec![0; 3 * size];
                apply(&sum_of_bytes(element, &operands), &target, &mut before);
                assert_eq!(before, vec![7; 3 * size]);
                let mut expected = vec![7; 128];
                (0..3).for_each(|index| expected[16 + skew + index * size] = 12);
                assert_eq!(bytes_of(&room), expected, "{element:?} at {skew}");
            }
        }
    }

    #[test]
    fn elements_across_pieces_are_changed_too() {
        let target = UserBuffer::leaked(&[3, 10, 3]);
        let operands = [0xFF; 16];
        apply(&sum_of_bytes(Element::U64, &operands), &target, &mut []);
        assert_eq!(bytes_of(&target), [0xFF; 16]);
    }

    #[test]
    fn threads_that_add_at_once_lose_nothing() {
        const COUNT: u64 = if cfg!(miri) { 20 } else { 5000 };
        let target = UserBuffer::leaked(&[24]);
        let awkward = target.part(9, 8);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (target, awkward) = (target.part(0, 8), awkward.clone());
                scope.spawn(move || {
                    for _ in 0..COUNT {
                        let one = 1_u64.to_le_bytes();
                        apply(&sum_of_bytes(Element::U64, &one), &target, &mut []);
                        apply(&sum_of_bytes(Element::U64, &one), &awkward, &mut []);
                    }
                });
            }
        });
        for part in [target.part(0, 8), awkward] {
            assert_eq!(bytes_of(&part), (4 * COUNT).to_le_bytes());
        }
    }
}
