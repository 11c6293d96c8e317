// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every upload needs: the store, the runtime for its requests, and memory for parts.
//! [`crate::core`] has one, [`crate::staging::recovery`] another.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weft_store::{Buffers, Range, Store};

use crate::staging::plan::PART_BYTES;

/// Chosen: this share of the room is for parts that are being filled. They may lie there for long,
/// so those that are sent never wait for them.
const FILLING_SHARE: u32 = 4;

/// The way to the store; copies share their room.
#[derive(Clone)]
pub struct Ways {
    /// Where objects lie.
    pub store: Arc<dyn Store>,
    /// Where requests run.
    pub runtime: Handle,
    /// For the bytes of parts.
    pub buffers: Buffers,
    room: Arc<Semaphore>,
    room_kib: u32,
    room_to_fill: Arc<Semaphore>,
}

impl Ways {
    /// With room for so many bytes of parts, over all files; at least for two parts. Half as much
    /// may lie unused beside them.
    pub fn new(store: Arc<dyn Store>, runtime: Handle, room_bytes: u64) -> Self {
        let all_kib = kib(room_bytes.max(PART_BYTES * 2));
        let filling_kib = match all_kib / FILLING_SHARE {
            kib if u64::from(kib) << 10 < PART_BYTES => 0,
            kib => kib,
        };
        let room_kib = all_kib - filling_kib;
        Self {
            store,
            runtime,
            buffers: Buffers::within(room_bytes / 2),
            room: Arc::new(Semaphore::new(room_kib as usize)),
            room_kib,
            room_to_fill: Arc::new(Semaphore::new(filling_kib as usize)),
        }
    }

    /// The same way to another store.
    pub fn over(&self, store: Arc<dyn Store>) -> Self {
        Self {
            store,
            ..self.clone()
        }
    }

    /// Waits until a part of this range, or a small file, has room in memory.
    pub async fn room_for(&self, range: Range) -> Option<OwnedSemaphorePermit> {
        let room = Arc::clone(&self.room);
        let kib = kib(range.byte_count()).min(self.room_kib);
        room.acquire_many_owned(kib).await.ok()
    }

    /// Room for a part that is being filled, if there is some.
    pub fn room_to_fill(&self, byte_count: u64) -> Option<OwnedSemaphorePermit> {
        let room = Arc::clone(&self.room_to_fill);
        room.try_acquire_many_owned(kib(byte_count)).ok()
    }
}

fn kib(byte_count: u64) -> u32 {
    u32::try_from(byte_count.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}
