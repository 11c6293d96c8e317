// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations under way, and the buffers that the library holds for them.
//!
//! Part of the node: post and remote start operations, completion ends them. While nothing ends,
//! the worker asks whether bytes arrive: a long message over a slow network moves, and does not
//! hang.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hasher};

use weft_fabric_sys::errno::FI_EAGAIN;

/// A word is looked at in each stretch of so many bytes. Chosen: a datagram of the least size
/// brings one.
const STRIDE_BYTES: usize = 1024;
const WORD_BYTES: usize = 8;

/// What became of a post.
#[derive(Debug)]
pub enum Posted {
    /// Under way; the number comes back with the completion.
    Started(u64),
    /// Done, without a completion.
    Done,
    /// Not taken now: FI_EAGAIN.
    Again,
    /// Refused, with libfabric's error number, positive.
    Refused(i32),
}

/// The buffer of each operation under way, empty for a peek, by the number that is its context.
#[derive(Default)]
pub(super) struct InFlight {
    buffers: HashMap<u64, Vec<u8>>,
    /// Given out last; the first is 1.
    last_number: u64,
}

impl InFlight {
    /// A number for an operation.
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Runs `call`, which gets a buffer with its length and a context, with a buffer that is held
    /// until the completion.
    pub(super) fn start(
        &mut self,
        buffer: Vec<u8>,
        call: impl FnOnce(*mut c_void, usize, *mut c_void) -> isize,
    ) -> Posted {
        let number = self.number();
        self.start_as(number, buffer, call)
    }

    /// The same under a number that was given out before.
    pub(super) fn start_as(
        &mut self,
        number: u64,
        mut buffer: Vec<u8>,
        call: impl FnOnce(*mut c_void, usize, *mut c_void) -> isize,
    ) -> Posted {
        let (base, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        self.buffers.insert(number, buffer);
        let code = call(base, length, number as *mut c_void);
        if code == 0 {
            return Posted::Started(number);
        }
        self.buffers.remove(&number);
        refused(code)
    }

    /// The buffer of an operation that goes on.
    pub(super) fn buffer(&self, number: u64) -> Option<&[u8]> {
        self.buffers.get(&number).map(Vec::as_slice)
    }

    /// An operation has ended: its buffer, unless it had ended before.
    pub(super) fn end(&mut self, number: u64) -> Option<Vec<u8>> {
        self.buffers.remove(&number)
    }

    pub(super) fn arriving(&self) -> u64 {
        let all = self.buffers.iter();
        all.fold(0, |sum, (number, buffer)| {
            sum.wrapping_add(sampled(*number, buffer))
        })
    }
}

/// What a code other than 0 says.
pub(super) fn refused(code: isize) -> Posted {
    if code == -(FI_EAGAIN as isize) {
        return Posted::Again;
    }
    Posted::Refused(i32::try_from(-code).unwrap_or(i32::MAX))
}

/// A hash of the number of an operation and of a sample of its buffer.
fn sampled(number: u64, buffer: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(number);
    for stretch in buffer.chunks(STRIDE_BYTES) {
        hasher.write(&stretch[..stretch.len().min(WORD_BYTES)]);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_of_the_least_size_is_seen_wherever_it_arrives() {
        let before = sampled(1, &[7; 10_000]);
        for at in 0..10_000 - 1_100 {
            let mut buffer = [7; 10_000];
            buffer[at..at + 1_100].fill(8);
            assert_ne!(sampled(1, &buffer), before, "{at}");
        }
        assert_ne!(sampled(1, &[1]), sampled(1, &[2]));
        assert_eq!(sampled(1, &[]), sampled(1, &[]));
    }
}
