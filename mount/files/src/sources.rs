// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a fetch gets its bytes: from the disk cache, else from their owner in the job, else from
//! the store. Bytes that did not come from the disk cache are put there. [`crate::pieces`] asks
//! here.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use weft_cache::{ContentName, DiskCache, Found};
use weft_store::{Range, Store, StoreError};

use crate::fault::mount_ends;
use crate::job::Job;
use crate::version::Version;

/// Chosen: pieces that wait for the disk to be written; those beyond it are not kept, since reads
/// do not wait for writes.
const WRITES_LIMIT: usize = 24;
/// Chosen: pieces that are read or written at once, each on a thread.
const THREADS: usize = 8;

/// A disk cache, with the name of the store and the bucket in it.
#[derive(Clone)]
pub struct Disk {
    /// The cache.
    pub cache: Arc<DiskCache>,
    /// The store's address and the bucket.
    pub source: String,
}

/// Disk, job and store.
#[derive(Clone)]
pub struct Sources {
    store: Arc<dyn Store>,
    disk: Option<Disk>,
    job: Option<Arc<Job>>,
    writes: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

impl Disk {
    /// The name of a content in the cache.
    pub fn name(&self, version: &Version) -> ContentName {
        let etag = version.etag.as_str();
        ContentName::new(&self.source, &version.key, etag, version.size_bytes)
    }
}

impl Sources {
    /// The store alone.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            disk: None,
            job: None,
            writes: Arc::new(Semaphore::new(WRITES_LIMIT)),
            threads: Arc::new(Semaphore::new(THREADS)),
        }
    }

    /// Looks on a disk first.
    pub fn add_disk(&mut self, disk: Disk) {
        self.disk = Some(disk);
    }

    /// Asks the owners in a job before it asks the store.
    pub fn add_job(&mut self, job: Arc<Job>) {
        self.job = Some(job);
    }

    /// Whether other nodes of a job are asked for bytes of this range.
    pub fn asks_others(&self, version: &Version, range: Range) -> bool {
        let job = self.job.as_ref();
        job.is_some_and(|job| job.asks_others(version, range))
    }

    async fn fetch(&self, version: &Arc<Version>, range: Range) -> Result<Bytes, StoreError> {
        match &self.job {
            Some(job) => job.get(&self.store, version, range).await,
            None => self.store.get(&version.key, range, &version.etag).await,
        }
    }

    /// The bytes of a range of whole blocks.
    ///
    /// # Errors
    /// What the store said.
    pub async fn get(&self, version: &Arc<Version>, range: Range) -> Result<Bytes, StoreError> {
        let Some(disk) = &self.disk else {
            return self.fetch(version, range).await;
        };
        let found = self.look(disk, version, range).await?;
        let mut coming = Vec::with_capacity(found.len());
        for part in found {
            coming.push(match part {
                Found::Here(bytes) => Part::Here(Bytes::from(bytes)),
                Found::Missing(missing) => {
                    let (sources, version) = (self.clone(), Arc::clone(version));
                    let missing = Range::new(missing.start, missing.end);
                    Part::Coming(tokio::spawn(async move {
                        let bytes = sources.fetch(&version, missing).await?;
                        sources.keep(&version, missing, &bytes);
                        Ok(bytes)
                    }))
                }
            });
        }
        let mut whole = BytesMut::new();
        let is_alone = coming.len() == 1;
        for part in coming {
            let bytes = match part {
                Part::Here(bytes) => bytes,
                Part::Coming(task) => {
                    let ends = |_| Err(mount_ends("GetObject", &version.key));
                    task.await.unwrap_or_else(ends)?
                }
            };
            if is_alone {
                return Ok(bytes);
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    async fn look(
        &self,
        disk: &Disk,
        version: &Arc<Version>,
        range: Range,
    ) -> Result<Vec<Found>, StoreError> {
        // Closed never, so that there is always a permit to wait for.
        let _permit = self.threads.acquire().await;
        let (cache, name) = (Arc::clone(&disk.cache), disk.name(version));
        let looked = spawn_blocking(move || cache.read(&name, range.start..range.end)).await;
        looked.map_err(|_| mount_ends("GetObject", &version.key))
    }

    /// Puts bytes on the disk, later.
    fn keep(&self, version: &Version, range: Range, bytes: &Bytes) {
        let Some(disk) = &self.disk else { return };
        let Ok(place) = Arc::clone(&self.writes).try_acquire_owned() else {
            return;
        };
        let (cache, name) = (Arc::clone(&disk.cache), disk.name(version));
        let (threads, bytes) = (Arc::clone(&self.threads), bytes.clone());
        tokio::spawn(async move {
            let _permit = threads.acquire().await;
            let _ = spawn_blocking(move || cache.write(&name, range.start, &bytes)).await;
            drop(place);
        });
    }
}

/// Bytes that are here or come.
enum Part {
    Here(Bytes),
    Coming(tokio::task::JoinHandle<Result<Bytes, StoreError>>),
}
