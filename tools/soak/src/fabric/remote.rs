// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations on the registered memory of others: write, read, fetch-and-add.
//!
//! Called by the worker. Source: fi_rma(3), fi_atomic(3).

use std::ffi::c_void;
use std::ptr;

use super::in_flight::Posted;
use super::node::{Node, object};
use super::registered_memory::MEMORY_KEY;

/// `FI_UINT64` and `FI_SUM` of fi_atomic.h.
const FI_UINT64: u32 = 7;
const FI_SUM: u32 = 2;

/// A part of a remote's registered memory.
#[derive(Clone, Copy, Debug)]
pub struct RemotePart {
    /// Whose, as the address vector names it.
    pub address: u64,
    /// Where it begins, in bytes from the memory's first.
    pub offset: u64,
}

impl RemotePart {
    /// Starts to write bytes into the part.
    pub fn write(self, node: &mut Node, bytes: Vec<u8>) -> Posted {
        let endpoint = node.endpoint;
        node.in_flight.start(bytes, |base, length, context| {
            // SAFETY: the endpoint is open; the buffer is held until the operation ends.
            unsafe {
                ((*(*object(endpoint)).rma).write)(
                    endpoint,
                    base,
                    length,
                    ptr::null_mut(),
                    self.address,
                    self.offset,
                    MEMORY_KEY,
                    context,
                )
            }
        })
    }

    /// Starts to read as many bytes as the buffer has from the part.
    pub fn read(self, node: &mut Node, buffer: Vec<u8>) -> Posted {
        let endpoint = node.endpoint;
        node.in_flight.start(buffer, |base, length, context| {
            // SAFETY: the endpoint is open; the library may write the buffer, which is held until
            // the operation ends.
            unsafe {
                ((*(*object(endpoint)).rma).read)(
                    endpoint,
                    base,
                    length,
                    ptr::null_mut(),
                    self.address,
                    self.offset,
                    MEMORY_KEY,
                    context,
                )
            }
        })
    }

    /// Starts to add to a word of a remote's registered memory; the first 8 bytes of the
    /// buffer get it as it was before.
    pub fn fetch_and_add(self, node: &mut Node, summand: u64) -> Posted {
        let endpoint = node.endpoint;
        let mut buffer = vec![0; 16];
        buffer[8..].copy_from_slice(&summand.to_ne_bytes());
        node.in_flight
            .start(buffer, |base: *mut c_void, _, context| {
                // SAFETY: 16 bytes are held: the result goes to the first 8, the summand is in the
                // others.
                unsafe {
                    ((*(*object(endpoint)).atomic).readwrite)(
                        endpoint,
                        base.cast::<u8>().add(8).cast_const().cast(),
                        1,
                        ptr::null_mut(),
                        base,
                        ptr::null_mut(),
                        self.address,
                        self.offset,
                        MEMORY_KEY,
                        FI_UINT64,
                        FI_SUM,
                        context,
                    )
                }
            })
    }
}
