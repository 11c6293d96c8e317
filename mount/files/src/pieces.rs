// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cache of fetched bytes in memory, and the fetches in flight. A piece is the result of one
//! ranged GET; it leaves the cache as a whole. A reader that wants bytes in flight waits for that
//! fetch, so no bytes are fetched twice.
//!
//! [`crate::reader`] asks for bytes, and for those that it will need next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use weft_store::{Range, Store, StoreError};

use crate::fault::mount_ends;
use crate::job::Job;
use crate::sources::{Disk, Sources};
use crate::version::{Version, VersionId};

/// Chosen: a miss fetches whole blocks of this size, so that small reads side by side share one.
pub const BLOCK_BYTES: u64 = 128 << 10;
/// Chosen: a demand of more is fetched in several ranges at once.
const PIECE_BYTES: u64 = 8 << 20;
/// Chosen: fetches at once; each has a connection.
const FETCHES: usize = 96;
/// In which room for fetches is counted.
const ROOM_UNIT_BYTES: u64 = 1 << 10;

type Outcome = Option<Result<Bytes, StoreError>>;

#[derive(Debug)]
enum Content {
    Ready { bytes: Bytes, is_used: bool },
    Coming(watch::Receiver<Outcome>),
}

#[derive(Debug)]
struct Piece {
    end: u64,
    content: Content,
    /// Somebody had bytes of it.
    was_read: bool,
    /// How much had come before it.
    came_at_bytes: u64,
}

#[derive(Debug, Default)]
struct Inner {
    pieces: BTreeMap<(VersionId, u64), Piece>,
    /// Pieces in the order in which they came, for the clock.
    order: VecDeque<(VersionId, u64)>,
    ready_bytes: u64,
    /// Of what is ready: what nobody has read yet.
    unread_bytes: u64,
    /// Asked for, and not here yet; most of it waits for its turn.
    coming_bytes: u64,
    /// Of what is coming: what has memory already.
    arriving_bytes: u64,
    /// All that ever came.
    came_bytes: u64,
}

/// The cache. Clones share it.
#[derive(Clone)]
pub struct Pieces {
    inner: Arc<Mutex<Inner>>,
    sources: Sources,
    runtime: Handle,
    /// For fetches from the store, and for those from other nodes of a job: these wait for fetches
    /// of others from the store, so none of both may take the other's place.
    lines: Arc<[Line; 2]>,
    limit_bytes: u64,
}

/// Fetches of one kind.
struct Line {
    fetches: Semaphore,
    /// A half or a quarter of the cache, for what arrives.
    room: Semaphore,
    room_units: u64,
}

/// Bytes that are here or come: a part of a read.
enum Stretch {
    Here(Bytes),
    Coming(watch::Receiver<Outcome>, usize, usize),
}

impl Pieces {
    /// A cache of `limit_bytes`, which fetches on `runtime`.
    pub fn new(store: Arc<dyn Store>, runtime: Handle, limit_bytes: u64) -> Self {
        Self {
            inner: Arc::default(),
            sources: Sources::new(store),
            runtime,
            lines: Arc::new([2, 4].map(|share| Line {
                fetches: Semaphore::new(FETCHES),
                room_units: limit_bytes / share / ROOM_UNIT_BYTES,
                room: Semaphore::new((limit_bytes / share / ROOM_UNIT_BYTES) as usize),
            })),
            limit_bytes,
        }
    }

    /// Looks on a disk before it asks the store.
    pub fn with_disk(mut self, disk: Disk) -> Self {
        self.sources.add_disk(disk);
        self
    }

    /// Asks the owners in a job before it asks the store.
    pub fn with_job(mut self, job: Arc<Job>) -> Self {
        self.sources.add_job(job);
        self
    }

    /// So much of the cache may be under way ahead of readers, or wait for them.
    pub fn ahead_limit_bytes(&self) -> u64 {
        self.limit_bytes / 4 * 3
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of `range`, and whether they had to be waited for.
    ///
    /// # Errors
    /// What the store said.
    pub async fn read(
        &self,
        version: &Arc<Version>,
        range: Range,
    ) -> Result<(Bytes, bool), StoreError> {
        let stretches = self.collect(version, range);
        let had_to_wait = stretches
            .iter()
            .any(|stretch| matches!(stretch, Stretch::Coming(..)));
        let mut parts = Vec::with_capacity(stretches.len());
        for stretch in stretches {
            parts.push(match stretch {
                Stretch::Here(bytes) => bytes,
                Stretch::Coming(mut coming, from, to) => {
                    let whole = outcome(&mut coming, version).await?;
                    whole.slice(from..to)
                }
            });
        }
        Ok((join(parts, range), had_to_wait))
    }

    /// The bytes of `range`, if all are here.
    pub fn here(&self, version: &Version, range: Range) -> Option<Bytes> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let found = inner.pieces.range_mut(..=(version.id, at)).next_back();
            let found = found.filter(|((id, _), piece)| *id == version.id && piece.end > at);
            let ((_, start), piece) = found?;
            let Content::Ready { bytes, is_used } = &mut piece.content else {
                return None;
            };
            *is_used = true;
            if !std::mem::replace(&mut piece.was_read, true) {
                inner.unread_bytes -= piece.end - start;
            }
            let end = piece.end.min(range.end);
            parts.push(bytes.slice((at - start) as usize..(end - start) as usize));
            at = end;
        }
        Some(join(parts, range))
    }

    /// Begins to fetch what of `range` is neither here nor under way; not if too much is under way.
    pub fn fetch_ahead(&self, version: &Arc<Version>, range: Range) -> bool {
        let mut inner = self.inner();
        let ahead_bytes = inner.coming_bytes + inner.unread_bytes;
        let has_room = ahead_bytes + range.byte_count() <= self.ahead_limit_bytes();
        if has_room {
            self.collect_in(&mut inner, version, range, false);
        }
        has_room
    }

    fn collect(&self, version: &Arc<Version>, range: Range) -> Vec<Stretch> {
        self.collect_in(&mut self.inner(), version, range, true)
    }

    /// Walks over the pieces of `range`, and begins fetches in the gaps.
    fn collect_in(
        &self,
        inner: &mut Inner,
        version: &Arc<Version>,
        range: Range,
        is_wanted_now: bool,
    ) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let found = inner.pieces.range_mut(..=(version.id, at)).next_back();
            let found = found.filter(|((id, _), piece)| *id == version.id && piece.end > at);
            let Some(((_, start), piece)) = found else {
                let gap = inner.gap(version, at, range.end);
                self.fetch(inner, version, gap);
                continue;
            };
            let end = piece.end.min(range.end);
            let (from, to) = ((at - start) as usize, (end - start) as usize);
            stretches.push(match &mut piece.content {
                Content::Ready { bytes, is_used } => {
                    *is_used |= is_wanted_now;
                    if is_wanted_now && !std::mem::replace(&mut piece.was_read, true) {
                        inner.unread_bytes -= piece.end - start;
                    }
                    Stretch::Here(bytes.slice(from..to))
                }
                Content::Coming(coming) => {
                    piece.was_read |= is_wanted_now;
                    Stretch::Coming(coming.clone(), from, to)
                }
            });
            at = end;
        }
        stretches
    }

    fn fetch(&self, inner: &mut Inner, version: &Arc<Version>, range: Range) {
        let (sender, receiver) = watch::channel(None);
        inner.pieces.insert(
            (version.id, range.start),
            Piece {
                end: range.end,
                content: Content::Coming(receiver),
                was_read: false,
                came_at_bytes: 0,
            },
        );
        inner.coming_bytes += range.byte_count();
        let (cache, version) = (self.clone(), Arc::clone(version));
        self.runtime.spawn(async move {
            // Closed never, so that there is always a permit to wait for.
            let line = &cache.lines[usize::from(cache.sources.asks_others(&version, range))];
            let permit = line.fetches.acquire().await;
            let room = cache.make_room_for(line, range).await;
            let got = cache.sources.get(&version, range).await;
            drop((permit, room));
            cache.settle(&version, range, &got);
            let _ = sender.send(Some(got));
        });
    }

    /// Waits until there is memory for what arrives.
    async fn make_room_for<'a>(&self, line: &'a Line, range: Range) -> Option<SemaphorePermit<'a>> {
        let units = range.byte_count().div_ceil(ROOM_UNIT_BYTES);
        let units = units.min(line.room_units);
        // Closed never, so that there is always a permit to wait for.
        let room = line.room.acquire_many(units as u32).await.ok();
        let mut inner = self.inner();
        inner.arriving_bytes += range.byte_count();
        inner.make_room(self.limit_bytes);
        room
    }

    /// Takes the outcome of a fetch into the cache, and makes room.
    fn settle(&self, version: &Version, range: Range, got: &Result<Bytes, StoreError>) {
        let mut inner = self.inner();
        let key = (version.id, range.start);
        inner.coming_bytes -= range.byte_count();
        inner.arriving_bytes -= range.byte_count();
        match got {
            Ok(bytes) => {
                let mut unread_bytes = 0;
                inner.came_bytes += range.byte_count();
                let came_at_bytes = inner.came_bytes;
                if let Some(piece) = inner.pieces.get_mut(&key) {
                    piece.came_at_bytes = came_at_bytes;
                    if !piece.was_read {
                        unread_bytes = range.byte_count();
                    }
                    piece.content = Content::Ready {
                        bytes: bytes.clone(),
                        is_used: false,
                    };
                }
                inner.unread_bytes += unread_bytes;
                inner.ready_bytes += range.byte_count();
                inner.order.push_back(key);
                inner.make_room(self.limit_bytes);
            }
            Err(_) => {
                inner.pieces.remove(&key);
            }
        }
    }
}

impl Inner {
    /// What to fetch for a gap that begins at or before `at`: whole blocks, up to the next piece,
    /// `wanted_end` or the object's end, and no more than one piece.
    fn gap(&self, version: &Version, at: u64, wanted_end: u64) -> Range {
        let id = version.id;
        let before = self.pieces.range(..(id, at)).next_back();
        let floor = before.filter(|((other, _), _)| *other == id);
        let floor = floor.map_or(0, |(_, piece)| piece.end);
        let next = self.pieces.range((id, at)..).next();
        let ceiling = next.filter(|((other, _), _)| *other == id);
        let ceiling = ceiling.map_or(version.size_bytes, |((_, start), _)| *start);
        let start = (at / BLOCK_BYTES * BLOCK_BYTES).max(floor);
        let end = wanted_end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        Range::new(start, end.min(ceiling).min(start + PIECE_BYTES))
    }

    /// The clock: a piece that was read since the hand last came stays for one more round. What
    /// was fetched ahead of a reader stays until it was read; but not for ever, as the reader may
    /// have gone: until twice as much as the cache holds has come after it. Once would be too
    /// little: of what a reader has asked for, the last may come first. Then all the others come
    /// before it is read, and so does what the reader asks for meanwhile.
    fn make_room(&mut self, limit_bytes: u64) {
        // Twice around: in the first one all may have been read since the hand last came.
        let mut spares = 2 * self.order.len();
        while self.ready_bytes + self.arriving_bytes > limit_bytes {
            let Some(key) = self.order.pop_front() else {
                return;
            };
            let Some(piece) = self.pieces.get_mut(&key) else {
                continue;
            };
            let Content::Ready { is_used, .. } = &mut piece.content else {
                continue;
            };
            let came_after_bytes = self.came_bytes - piece.came_at_bytes;
            let is_awaited = !piece.was_read && came_after_bytes < 2 * limit_bytes;
            if std::mem::take(is_used) || (is_awaited && spares > 0) {
                spares = spares.saturating_sub(1);
                self.order.push_back(key);
                continue;
            }
            let byte_count = piece.end - key.1;
            if !piece.was_read {
                self.unread_bytes -= byte_count;
            }
            self.ready_bytes -= byte_count;
            self.pieces.remove(&key);
        }
    }
}

async fn outcome(
    coming: &mut watch::Receiver<Outcome>,
    version: &Version,
) -> Result<Bytes, StoreError> {
    match coming.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().expect("it was waited for"),
        // The runtime ends, and with it the fetch.
        Err(_) => Err(mount_ends("GetObject", &version.key)),
    }
}

/// One piece of memory, without a copy where the read lies in one piece.
fn join(mut parts: Vec<Bytes>, range: Range) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut whole = BytesMut::with_capacity(range.byte_count() as usize);
    for part in parts {
        whole.extend_from_slice(&part);
    }
    whole.freeze()
}

#[cfg(test)]
mod tests;
