// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which mount carries out a record: the one that wrote it, as long as it shows that it is alive.
//! [`crate::renames`] keeps a hold while it works; [`crate::renames::watch`] takes one over.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weft_store::{Condition, ETag, Failure, Range, StoreError};

use crate::fault::{Fault, Reason};
use crate::renames::record::VERSION;
use crate::staging::stage::new_id;
use crate::staging::ways::Ways;

/// Specified: what a holder's object adds to the record's key.
pub const ENDING: &str = ".holder";
/// How long things take, of all mounts that share a folder; specified but for the pause.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// A record that nobody worked on for so long was left.
    pub patience: Duration,
    /// How often a holder shows that it lives.
    pub heartbeat: Duration,
    /// A holder that could not for so long asks for nothing more.
    pub least_sure: Duration,
    /// For how long a rename waits for another one that is about the same folders.
    pub wait: Duration,
    /// The first pause before what broke off is tried again; each is twice as long.
    pub pause: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            heartbeat: Duration::from_secs(5),
            least_sure: Duration::from_secs(20),
            wait: Duration::from_secs(5),
            pause: Duration::from_secs(2),
        }
    }
}

/// Chosen: of an object that says who holds a record.
const MOST_BYTES: u64 = 1000;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    version: u32,
    holder: String,
    heartbeat: u64,
}

/// Who has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This mount.
    Own,
    /// Another one, which goes on with it.
    Other,
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

fn unsure() -> Fault {
    let text = "the store did not take the heartbeat for too long";
    Fault::because(Reason::Broken, text)
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

    /// Takes a record over from whoever had it when its holder's object was `found`; nothing where
    /// somebody else was quicker.
    ///
    /// # Errors
    /// What the store said.
    pub async fn take_over(
        ways: &Ways,
        record: &str,
        found: Option<ETag>,
        holder: String,
    ) -> Result<Option<Self>, Fault> {
        let mut hold = Self::of_writer(record, holder);
        hold.etag = found;
        let holder = hold.show(ways).await?;
        Ok((holder == Holder::Own).then_some(hold))
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
        Self::take_over(ways, record, found, new_id()).await
    }

    /// Does `work`, and shows meanwhile that the holder lives. Work that this mount may not do any
    /// more is dropped where it stands, with the requests that it waits for; nothing comes of it
    /// where another mount has taken the record over.
    ///
    /// # Errors
    /// What `work` says; `Broken` where another mount could have taken the record over by now.
    pub async fn during<T>(
        &mut self,
        ways: &Ways,
        times: &Times,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<Option<T>, Fault> {
        let mut work = pin!(work);
        // Attempts that fail are not repeated at once.
        let mut tried = self.at;
        loop {
            let since = self.at;
            // Also after this host stood still.
            let go_on = poll_fn(|context| match since.elapsed() < times.least_sure {
                true => work.as_mut().poll(context).map(Some),
                false => Poll::Ready(None),
            });
            let pause = times.heartbeat.saturating_sub(tried.elapsed());
            match tokio::time::timeout(pause, go_on).await {
                Ok(Some(done)) => return done.map(Some),
                Ok(None) => return Err(unsure()),
                Err(_) => tried = Instant::now(),
            }
            let left = times.least_sure.saturating_sub(since.elapsed());
            match tokio::time::timeout(left, self.show(ways)).await {
                Ok(Ok(Holder::Other)) => return Ok(None),
                Ok(_) => {}
                Err(_) => return Err(unsure()),
            }
        }
    }

    /// Shows that the holder lives; who has the record.
    ///
    /// # Errors
    /// What the store said.
    pub async fn show(&mut self, ways: &Ways) -> Result<Holder, Fault> {
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
                    None => return Ok(Holder::Other),
                }
            }
            Err(error) => return Err(error.into()),
        };
        (self.etag, self.at, self.heartbeat) = (Some(etag), at, self.heartbeat + 1);
        Ok(Holder::Own)
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
