// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which mount does what a record says: the one that wrote it, as long as it shows that it lives.
//! [`crate::renames::moving`] keeps a hold while it works; [`crate::renames::watch`] takes one
//! over.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weft_store::{Condition, ETag, Failure, Range, StoreError};

use crate::fault::{Fault, Reason};
use crate::renames::record::VERSION;
use crate::staging::stage::new_id;
use crate::staging::ways::Ways;

/// Specified: what a holder's object adds to the record's key.
pub const ENDING: &str = ".holder";
/// Specified: how often a holder shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Specified: a holder that could not for so long asks for nothing more.
const LEAST_SURE: Duration = Duration::from_secs(20);
/// Chosen: of an object that says who holds a record.
const MOST_BYTES: u64 = 1000;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    version: u32,
    holder: String,
    heartbeat: u64,
}

/// One mount's hold on a record.
pub struct Hold {
    /// Of the holder's object.
    key: String,
    /// What that holds, where it was written.
    etag: Option<ETag>,
    /// When it was written last.
    at: Instant,
    heartbeat: u64,
    /// This mount's name, for this record.
    holder: String,
}

impl Hold {
    /// Of the mount that is about to write the record; nothing is written of it yet.
    pub fn of_writer(record: &str, holder: String) -> Self {
        Self {
            key: format!("{record}{ENDING}"),
            etag: None,
            at: Instant::now(),
            heartbeat: 0,
            holder,
        }
    }

    /// Takes a record over from whoever had it when its holder's object was `found`.
    ///
    /// # Errors
    /// `Busy` where somebody else was quicker.
    pub async fn take_over(
        ways: &Ways,
        record: &str,
        found: Option<ETag>,
        holder: String,
    ) -> Result<Self, Fault> {
        let mut hold = Self::of_writer(record, holder);
        hold.etag = found;
        hold.show(ways).await?;
        Ok(hold)
    }

    /// Takes a record over from its dead writer, whose name is the record's own; nothing where
    /// another mount has it by now.
    ///
    /// # Errors
    /// What the store said.
    pub async fn of_dead(ways: &Ways, record: &str, id: &str) -> Result<Option<Self>, Fault> {
        let of_writer = Self::of_writer(record, id.to_owned());
        let found = match of_writer.read(ways).await? {
            Some((_, body)) if body.as_ref().is_none_or(|body| body.holder != id) => {
                return Ok(None);
            }
            Some((etag, _)) => Some(etag),
            None => None,
        };
        match Self::take_over(ways, record, found, new_id()).await {
            Err(fault) if fault.reason == Reason::Busy => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Shows that the holder lives, where that was not done for a while.
    ///
    /// # Errors
    /// `Busy` where another mount has taken the record over, or could have by now.
    pub async fn keep(&mut self, ways: &Ways) -> Result<(), Fault> {
        if self.at.elapsed() < HEARTBEAT {
            return Ok(());
        }
        match self.show(ways).await {
            Err(fault) if fault.reason != Reason::Busy && self.at.elapsed() < LEAST_SURE => Ok(()),
            shown => shown,
        }
    }

    /// Shows that the holder lives.
    ///
    /// # Errors
    /// `Busy` where another mount has taken the record over; what the store said.
    pub async fn show(&mut self, ways: &Ways) -> Result<(), Fault> {
        let at = Instant::now();
        let body = Body {
            version: VERSION,
            holder: self.holder.clone(),
            heartbeat: self.heartbeat,
        };
        let body = serde_json::to_vec(&body);
        let body = body.map_err(|error| Fault::because(Reason::Broken, error.to_string()))?;
        let when = match &self.etag {
            Some(etag) => Condition::IfMatch(etag.clone()),
            None => Condition::IfAbsent,
        };
        let etag = match ways.store.put(&self.key, body.into(), &when).await {
            Ok(etag) => etag,
            // The answer to an earlier attempt may have been lost.
            Err(error) if matches!(error.failure, Failure::Changed | Failure::Missing) => {
                match self.own(ways).await? {
                    Some(etag) => etag,
                    None => {
                        let text = "another mount goes on with it";
                        return Err(Fault::because(Reason::Busy, text));
                    }
                }
            }
            Err(error) => return Err(error.into()),
        };
        (self.etag, self.at, self.heartbeat) = (Some(etag), at, self.heartbeat + 1);
        Ok(())
    }

    /// What the holder's object holds, if it is what this mount wanted to write.
    async fn own(&self, ways: &Ways) -> Result<Option<ETag>, StoreError> {
        let (holder, heartbeat) = (self.holder.clone(), self.heartbeat);
        let wanted = Body {
            version: VERSION,
            holder,
            heartbeat,
        };
        let found = self.read(ways).await?;
        let own = found.filter(|(_, body)| body.as_ref() == Some(&wanted));
        Ok(own.map(|(etag, _)| etag))
    }

    /// The holder's object, if there is one, and what it says if that can be read.
    async fn read(&self, ways: &Ways) -> Result<Option<(ETag, Option<Body>)>, StoreError> {
        let Some(info) = ways.store.find(&self.key).await? else {
            return Ok(None);
        };
        if !(1..=MOST_BYTES).contains(&info.size_bytes) {
            return Ok(Some((info.etag, None)));
        }
        let range = Range::new(0, info.size_bytes);
        let body = match ways.store.get(&self.key, range, &info.etag).await {
            Ok(body) => body,
            Err(error) if matches!(error.failure, Failure::Changed | Failure::Missing) => {
                return Ok(Some((info.etag, None)));
            }
            Err(error) => return Err(error),
        };
        Ok(Some((info.etag, serde_json::from_slice(&body).ok())))
    }

    /// Nothing is left to be done: nobody needs the object any more.
    ///
    /// # Errors
    /// What the store said.
    pub async fn end(&self, ways: &Ways) -> Result<(), StoreError> {
        match &self.etag {
            Some(_) => ways.store.delete(&self.key, &Condition::Always).await,
            None => Ok(()),
        }
    }
}
