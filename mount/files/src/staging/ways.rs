// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every upload needs: the store, the runtime for its requests, and memory for parts.
//! [`crate::core`] has one, [`crate::staging::recovery`] another.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weft_store::{Range, Store};

use crate::staging::plan::PART_BYTES;

/// The way to the store; copies share their room.
#[derive(Clone)]
pub struct Ways {
    /// Where objects lie.
    pub store: Arc<dyn Store>,
    /// Where requests run.
    pub runtime: Handle,
    room: Arc<Semaphore>,
    room_mib: u32,
}

impl Ways {
    /// With room for so many bytes of parts, over all files; at least for two parts.
    pub fn new(store: Arc<dyn Store>, runtime: Handle, room_bytes: u64) -> Self {
        let room_mib = (room_bytes.max(PART_BYTES * 2) >> 20) as u32;
        Self {
            store,
            runtime,
            room: Arc::new(Semaphore::new(room_mib as usize)),
            room_mib,
        }
    }

    /// The same way to another store.
    pub fn over(&self, store: Arc<dyn Store>) -> Self {
        Self {
            store,
            ..self.clone()
        }
    }

    /// Waits until a part of this range has room in memory.
    pub async fn room_for(&self, range: Range) -> Option<OwnedSemaphorePermit> {
        let mib = (range.byte_count() >> 20) as u32 + 1;
        let room = Arc::clone(&self.room);
        room.acquire_many_owned(mib.min(self.room_mib)).await.ok()
    }
}
