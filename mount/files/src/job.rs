// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the mounts of a job fetch together: gets bytes, objects and listings from their owners,
//! and answers for what this node owns. docs/job-cache.md. [`crate::sources`] asks for bytes here,
//! [`crate::job_store`] for names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use weft_store::{Range, Store, StoreError};

use crate::fault::mount_ends;
use crate::job_messages::Question;
use crate::owners::Owners;
use crate::version::Version;

/// Specified (1.2): neighbouring bytes have one owner.
pub const EXTENT_BYTES: u64 = 8 << 20;
/// Specified (2.3): the bytes of one answer, with its first byte in the room that is left.
pub const ANSWER_BYTES: u64 = 1 << 20;
/// Specified (2.5).
pub const FOLLOWS: u8 = 0;
/// Specified (2.5).
pub const MISSING: u8 = 1;
/// Specified (2.5).
pub const ELSE: u8 = 2;

/// Chosen: between two questions to a node that may not have begun yet.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a node did not answer, as whoever carries questions says it.
pub type Unreached = Box<dyn std::error::Error + Send + Sync>;

/// The other nodes. `mount/daemon` gives them.
#[async_trait]
pub trait Neighbours: Send + Sync + 'static {
    /// Which node this is.
    fn own(&self) -> usize;
    /// How many nodes there are.
    fn node_count(&self) -> usize;
    /// Asks a node.
    ///
    /// # Errors
    /// It is gone, or silent.
    async fn ask(&self, node: usize, question: Bytes) -> Result<Bytes, Unreached>;
    /// Asks a node about locks: behind no other questions, and no longer than `patience`.
    ///
    /// # Errors
    /// It is gone, or silent.
    async fn ask_soon(
        &self,
        node: usize,
        question: Bytes,
        patience: Duration,
    ) -> Result<Bytes, Unreached> {
        tokio::time::timeout(patience, self.ask(node, question)).await?
    }
}

/// What one question asks for, and what is wanted of the extent in all.
#[derive(Clone, Copy)]
struct Portion {
    range: Range,
    whole: Range,
}

/// This node's part in its job.
pub struct Job {
    neighbours: Arc<dyn Neighbours>,
    owners: Owners,
    tell: fn(&str),
}

impl Job {
    /// Among these. `tell` takes warnings, one line each.
    pub fn new(neighbours: Arc<dyn Neighbours>, tell: fn(&str)) -> Self {
        Self {
            owners: Owners::new(neighbours.own(), neighbours.node_count()),
            neighbours,
            tell,
        }
    }

    /// The answer of a subject's owner, without its first byte; nothing where this node should ask
    /// the store itself. `Some(None)` where there is no such object.
    pub async fn ask(&self, subject: &[u8], question: &Question) -> Option<Option<Bytes>> {
        let (_, mut answer) = self.ask_owner(subject, question.write()).await?;
        match answer.try_get_u8() {
            Ok(FOLLOWS) => Some(Some(answer)),
            Ok(MISSING) => Some(None),
            _ => None,
        }
    }

    /// The owner of a subject and its answer; nothing where that is this node.
    pub async fn ask_owner(&self, subject: &[u8], question: Bytes) -> Option<(usize, Bytes)> {
        // In the beginning a turn may wait for a node. Else it loses one; then this one is left.
        while let Some(node) = self.owners.ask_whom(subject) {
            match self.neighbours.ask(node, question.clone()).await {
                Ok(answer) => {
                    self.owners.note_answer(node);
                    return Some((node, answer));
                }
                Err(_) if self.owners.may_begin_yet(node) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(unreached) => self.note_silent(node, &unreached),
            }
        }
        None
    }

    /// Since when every subject has had the owner that it has now, in this node's view.
    pub fn same_since(&self) -> Instant {
        self.owners.same_since()
    }

    /// Whether this node owns a subject.
    pub fn owns(&self, subject: &[u8]) -> bool {
        self.owners.ask_whom(subject).is_none()
    }

    /// The answer of one node, whatever it owns.
    ///
    /// # Errors
    /// It is gone, or silent; others own its subjects for a while then.
    pub async fn ask_node(&self, node: usize, question: Bytes) -> Result<Bytes, Unreached> {
        let answer = self.neighbours.ask(node, question).await;
        self.note(node, &answer);
        answer
    }

    /// The answers of all other nodes that live. Who does not answer counts as dead for a while,
    /// unless it may not have begun yet.
    pub async fn ask_all(self: &Arc<Self>, question: Bytes) -> Vec<Bytes> {
        let own = self.own();
        let nodes = (0..self.node_count()).filter(|node| *node != own);
        let living = nodes.filter(|node| !self.owners.is_dead(*node));
        let asked: Vec<_> = living
            .map(|node| {
                let (job, question) = (Arc::clone(self), question.clone());
                tokio::spawn(async move {
                    let answer = job.neighbours.ask(node, question).await;
                    if answer.is_ok() || !job.owners.may_begin_yet(node) {
                        job.note(node, &answer);
                    }
                    answer.ok()
                })
            })
            .collect();
        let mut answers = Vec::new();
        for answer in asked {
            answers.extend(answer.await.ok().flatten());
        }
        answers
    }

    fn note(&self, node: usize, answer: &Result<Bytes, Unreached>) {
        match answer {
            Ok(_) => self.owners.note_answer(node),
            Err(unreached) => self.note_silent(node, unreached),
        }
    }

    fn note_silent(&self, node: usize, unreached: &Unreached) {
        if self.owners.is_silent(node) {
            (self.tell)(&format!(
                "node {node} of the job is silent ({unreached}); what it owns is fetched by others"
            ));
        }
    }

    /// Which node this is.
    pub fn own(&self) -> usize {
        self.neighbours.own()
    }

    /// How many nodes the job has.
    pub fn node_count(&self) -> usize {
        self.neighbours.node_count()
    }

    /// Whether a part of a range has another owner than this node.
    pub fn asks_others(&self, version: &Version, range: Range) -> bool {
        let mut extents = range.start / EXTENT_BYTES..range.end.div_ceil(EXTENT_BYTES);
        extents.any(|extent| self.owners.ask_whom(&subject(version, extent)).is_some())
    }

    /// Bytes of a content, from their owners or the store.
    ///
    /// # Errors
    /// What the store said.
    pub async fn get(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        version: &Arc<Version>,
        range: Range,
    ) -> Result<Bytes, StoreError> {
        let mut coming = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let extent = at / EXTENT_BYTES;
            let extent_end = range.end.min((extent + 1) * EXTENT_BYTES);
            let subject = subject(version, extent);
            // What this node fetches itself is one request.
            let end = match self.owners.ask_whom(&subject) {
                Some(_) => extent_end.min(at + ANSWER_BYTES),
                None => extent_end,
            };
            let (job, store, version) = (Arc::clone(self), Arc::clone(store), Arc::clone(version));
            let part = Portion {
                range: Range::new(at, end),
                whole: Range::new(extent_start(at, range), extent_end),
            };
            coming.push(tokio::spawn(async move {
                job.get_part(&store, &version, &subject, part).await
            }));
            at = end;
        }
        let mut whole = BytesMut::new();
        let is_alone = coming.len() == 1;
        for part in coming {
            let ends = |_| Err(mount_ends("GetObject", &version.key));
            let bytes = part.await.unwrap_or_else(ends)?;
            if is_alone {
                return Ok(bytes);
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    async fn get_part(
        &self,
        store: &Arc<dyn Store>,
        version: &Version,
        subject: &[u8],
        part: Portion,
    ) -> Result<Bytes, StoreError> {
        let Portion { range, whole } = part;
        let question = Question::Bytes {
            key: version.key.clone(),
            etag: version.etag.clone(),
            size_bytes: version.size_bytes,
            range,
            whole,
        };
        if let Some(Some(bytes)) = self.ask(subject, &question).await
            && bytes.len() as u64 == range.byte_count()
        {
            return Ok(bytes);
        }
        store.get(&version.key, range, &version.etag).await
    }
}

/// Where what a range has of the extent of a byte begins.
fn extent_start(at: u64, range: Range) -> u64 {
    range.start.max(at / EXTENT_BYTES * EXTENT_BYTES)
}

fn subject(version: &Version, extent: u64) -> Vec<u8> {
    let mut subject = BytesMut::new();
    subject.put_u8(b'B');
    for part in [&*version.key, version.etag.as_str()] {
        subject.put_slice(part.as_bytes());
        subject.put_u8(0);
    }
    subject.put_u64_le(extent);
    subject.to_vec()
}

/// An answer that is no more than its first byte and words.
pub fn refusal(kind: u8, words: &str) -> [Bytes; 2] {
    [Bytes::from(vec![kind]), Bytes::from(words.to_owned())]
}
