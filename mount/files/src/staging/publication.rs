// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes an object from a staged file: by one request for a small file, by an upload for a large
//! one, and never a half one. [`crate::draft`] does it while the mount lives,
//! [`crate::staging::recovery`] afterwards.

use std::sync::Arc;

use bytes::Bytes;
use weft_store::{Condition, ETag, Failure, Range};

use crate::fault::{Fault, Reason};
use crate::staging::content::Content;
use crate::staging::plan::PART_BYTES;
use crate::staging::record::Note;
use crate::staging::sending::{
    Again, Own, Sending, about, earlier_object, own_object, published_unheard,
};
use crate::staging::uploading::Uploading;
use crate::staging::ways::Ways;

/// A staged file, and its upload once one is under way.
pub struct Publication {
    /// Its bytes.
    pub content: Content,
    /// Its upload.
    pub upload: Uploading,
    /// The store may have made the object, and nobody heard of it.
    is_unheard: bool,
}

impl Publication {
    /// Without an upload.
    pub fn new(content: Content) -> Self {
        Self {
            content,
            upload: Uploading::default(),
            is_unheard: false,
        }
    }

    /// What a dead mount left, which may have tried to publish it.
    pub fn found(content: Content) -> Self {
        Self {
            is_unheard: true,
            ..Self::new(content)
        }
    }

    /// Whether the store may have made the object though nobody heard of it.
    pub fn is_unheard(&self) -> bool {
        self.is_unheard
    }

    /// A range is about to be written.
    ///
    /// # Errors
    /// `NoSpace` where bytes were let go that would have to be sent again.
    pub fn touch(&mut self, ways: &Ways, range: Range) -> Result<(), Fault> {
        self.content.tail.change(range);
        let Some(sending) = self.upload.sending_mut() else {
            return Ok(());
        };
        match sending.will_change(range, &self.content) {
            Again::Parts => Ok(()),
            Again::All if self.has_all() => {
                self.upload.give_up(ways);
                Ok(())
            }
            Again::All | Again::Never => {
                let text = "bytes that were sent are written again, and those beside them were \
                            sent and dropped from the stage, because the file is larger than \
                            --stage-limit. Give it more, or write in order";
                Err(Fault::because(Reason::NoSpace, text))
            }
        }
    }

    /// Writes `data` at `offset`. If it follows on what was written, in a file of which the store
    /// has nothing, it stays in memory until it is sent.
    ///
    /// # Errors
    /// `NoSpace` before anything is taken; `TooLarge`; what the system said.
    pub fn write(&mut self, ways: &Ways, key: &str, offset: u64, data: &[u8]) -> Result<(), Fault> {
        let size = self.content.size();
        let range = Range::new(offset, offset.saturating_add(data.len() as u64));
        self.touch(ways, range)?;
        self.content.write(key, offset, data)?;
        if offset == size && self.content.places.is_new() {
            let grid = self.upload.grid();
            self.content.tail.append(ways, grid, offset, data);
        }
        Ok(())
    }

    /// The file is about to be cut to `size` bytes.
    ///
    /// # Errors
    /// As [`Publication::touch`].
    pub fn cut(&mut self, ways: &Ways, size: u64) -> Result<(), Fault> {
        self.content.tail.change(Range::new(size, u64::MAX));
        let reached = self.upload.reached();
        if size >= reached {
            return Ok(());
        }
        if size > 0 && !self.content.places.has(Range::new(0, size)) {
            let text = "bytes were sent and dropped from the stage, because the file is larger \
                        than --stage-limit, so it cannot be cut. Give it more";
            return Err(Fault::because(Reason::NoSpace, text));
        }
        self.upload.give_up(ways);
        Ok(())
    }

    /// Whether all bytes can be read here.
    pub fn has_all(&self) -> bool {
        let size = self.content.size();
        size == 0 || self.content.places.has(Range::new(0, size))
    }

    /// Whether one request publishes it.
    pub fn is_small(&self) -> bool {
        self.upload.reached() == 0 && self.content.size() <= PART_BYTES
    }

    /// Makes it the object `key`.
    ///
    /// # Errors
    /// `Stale` where somebody else wrote the object; what the store said.
    pub async fn publish(&mut self, ways: &Ways, key: &str) -> Result<ETag, Fault> {
        let was_unheard = self.is_unheard;
        if was_unheard {
            self.hear(ways, key).await?;
        }
        let mut published = self.publish_once(ways, key).await;
        let is_stale = |fault: &Fault| fault.reason == Reason::Stale;
        // The store may have gone on with the earlier attempt after it was asked.
        if was_unheard && published.as_ref().is_err_and(is_stale) && self.hear(ways, key).await? {
            published = self.publish_once(ways, key).await;
        }
        self.is_unheard = published.is_err();
        published
    }

    /// Asks whether the store has done an earlier attempt, of the file before it was changed: that
    /// object is what the next one replaces. Whether it has.
    async fn hear(&mut self, ways: &Ways, key: &str) -> Result<bool, Fault> {
        let earlier = earlier_object(&*ways.store, key, &self.content).await?;
        let is_done = earlier.is_some();
        if let Some(version) = earlier.map(Arc::new) {
            let kept = self.upload.sending().map(|one| one.kept_in(&version));
            for range in kept.into_iter().flatten() {
                self.content.copy(key, range, &version, range.start)?;
            }
            self.content.replaced(&version)?;
            self.content.note(Note::Whole)?;
            self.upload.give_up(ways);
        }
        let is_ambiguous = self.upload.sending().is_some_and(Sending::is_ambiguous);
        if is_ambiguous && self.has_all() {
            self.upload.give_up(ways);
        }
        Ok(is_done)
    }

    async fn publish_once(&mut self, ways: &Ways, key: &str) -> Result<ETag, Fault> {
        let published = if self.is_small() {
            self.upload.give_up(ways);
            self.put(ways, key).await
        } else {
            self.finish(ways, key).await
        };
        let fault = match published {
            Err(fault) if matches!(fault.reason, Reason::NotFound | Reason::Stale) => fault,
            published => return published,
        };
        // An attempt before may have done it, and its answer was lost.
        match own_object(&*ways.store, self.own(key)).await {
            Some(etag) => {
                self.upload.give_up(ways);
                Ok(etag)
            }
            None => {
                let cause = fault.cause.unwrap_or_else(|| format!("`{key}` is gone"));
                let text = format!(
                    "{cause}. If hosts of one job write this file together, give all their mounts \
                     --shared-writes"
                );
                Err(Fault::because(Reason::Stale, text))
            }
        }
    }

    fn own<'a>(&'a self, key: &'a str) -> Own<'a> {
        Own {
            key,
            id: self.content.id.as_str(),
            size_bytes: self.content.size(),
        }
    }

    async fn finish(&mut self, ways: &Ways, key: &str) -> Result<ETag, Fault> {
        let finished = self.upload.finish(ways, key, &mut self.content).await;
        let is_gone = |fault: &Fault| fault.reason == Reason::NotFound;
        if finished.as_ref().is_err_and(is_gone) && self.has_all() {
            // Somebody aborted the upload, as rules of buckets do after days.
            self.upload.give_up(ways);
            return self.upload.finish(ways, key, &mut self.content).await;
        }
        finished
    }

    /// A small file is one request.
    async fn put(&mut self, ways: &Ways, key: &str) -> Result<ETag, Fault> {
        let (size, store) = (self.content.size(), &*ways.store);
        let (body, room) = match size {
            0 => (Bytes::new(), None),
            _ => {
                let whole = Range::new(0, size);
                let room = ways.room_for(whole).await;
                (self.content.fetch(ways, whole).await?, room)
            }
        };
        let (about, when) = (about(&self.content), self.content.when.condition());
        let put = match store.put_with(key, body.clone(), &about, &when).await {
            Err(error) if error.failure == Failure::Unsupported => {
                let put = store.put_with(key, body.clone(), &about, &Condition::Always);
                put.await
            }
            put => put,
        };
        drop(body);
        // What is asked now takes no bytes, and the store may be slow to answer.
        drop(room);
        match put {
            Ok(etag) => Ok(etag),
            Err(error) => published_unheard(store, self.own(key), error).await,
        }
    }
}
