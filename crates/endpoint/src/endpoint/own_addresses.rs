// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The addresses of all endpoints that are open in this process. A closing endpoint asks, since a
//! remote in the same process may be unable to make progress while the endpoint waits for it: its
//! thread may be the one that waits.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

static OPEN: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<SocketAddr>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of one endpoint; goes with it.
#[derive(Debug)]
pub(crate) struct OwnAddress {
    address: SocketAddr,
    process: u32,
}

impl OwnAddress {
    /// Setup.
    pub(crate) fn enter(address: SocketAddr) -> Self {
        open().push(address);
        Self {
            address,
            process: std::process::id(),
        }
    }
}

impl Drop for OwnAddress {
    fn drop(&mut self) {
        // In a child of fork(2) the lock may be held by a thread that is not there.
        if self.process != std::process::id() {
            return;
        }
        let mut open = open();
        if let Some(index) = open.iter().position(|address| *address == self.address) {
            open.swap_remove(index);
        }
    }
}

/// Whether all of these are endpoints of this process. Slow path: a lock.
pub(super) fn hold_all(addresses: &[SocketAddr]) -> bool {
    let open = open();
    addresses.iter().all(|address| open.contains(address))
}
