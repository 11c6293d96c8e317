// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asks the owners of files by name, and notes what they say. [`crate::shared::shared_files`] and
//! [`crate::shared::shared_names`] ask here.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use weft_store::ETag;

use crate::changes::Name;
use crate::core::Core;
use crate::fault::{Fault, Reason};
use crate::job::Job;
use crate::job_store::JobStore;
use crate::mode::Mode;
use crate::names::Listed;
use crate::shared::messages::{self, Ask, ByName, Looked, Seen, subject};
use crate::shared::remote_file::Place;

/// What became of an attempt to open a file at its owner.
pub struct There {
    /// Where it is open now.
    pub place: Place,
    /// The store has nothing of it.
    pub is_new: bool,
    /// What it is like.
    pub seen: Seen,
}

/// What is known of a name that this node does not find.
pub enum Found {
    /// The owner knows more than the store.
    Seen(Seen),
    /// Nobody has made the name since.
    NotMadeSince(Instant),
}

/// The other nodes, as owners of files.
pub struct Others {
    core: Arc<Core>,
    /// None where nothing is shared.
    pub job: Option<Arc<Job>>,
    drafts: Mutex<HashSet<u64>>,
}

impl Others {
    /// Of a mount.
    pub fn new(core: Arc<Core>, job: Option<Arc<Job>>) -> Self {
        Self {
            core,
            job,
            drafts: Mutex::default(),
        }
    }

    /// Nodes of files of which others have drafts, or had when they were asked last.
    pub fn drafts(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this node owns a key.
    pub fn is_own(&self, key: &str) -> bool {
        self.job.as_ref().is_none_or(|job| job.owns(&subject(key)))
    }

    /// What the owner of a key knows of it, if that is another node.
    ///
    /// # Errors
    /// What the owner says.
    pub async fn look(&self, key: &str) -> Result<Option<Seen>, Fault> {
        let Some(job) = &self.job else {
            return Ok(None);
        };
        Ok(match look_at_owner(job, key).await? {
            Some((Looked::Seen(seen), _)) => Some(seen),
            _ => None,
        })
    }

    /// The owner of a key and its answer; nothing where that is this node.
    ///
    /// # Errors
    /// What the owner says.
    pub async fn ask(&self, key: &str, what: ByName) -> Result<Option<(usize, Bytes)>, Fault> {
        let Some(job) = &self.job else {
            return Ok(None);
        };
        let question = Ask::Name {
            node: job.own() as u64,
            what,
            key: key.to_owned(),
        };
        let Some((node, answer)) = job.ask_owner(&subject(key), question.write()).await else {
            return Ok(None);
        };
        let answer = messages::answered(answer)?.ok_or(Reason::Broken)?;
        Ok(Some((node, answer)))
    }

    /// What the owner of a name that this node knows as missing knows of it. In a job every mount
    /// is asked, whether files are shared or not.
    ///
    /// # Errors
    /// What the owner says, where files are shared.
    pub async fn look_for(&self, names: &JobStore, key: &str) -> Result<Found, Fault> {
        let job = &names.job;
        let made_at = match look_at_owner(job, key).await {
            Ok(None) => names.new_names.made_at(key),
            Ok(Some((Looked::Seen(seen), _))) => return Ok(Found::Seen(seen)),
            Ok(Some((Looked::NotMade(age), answered))) => {
                let began = job.same_since();
                answered.checked_sub(age).unwrap_or(began)
            }
            Err(fault) if self.job.is_some() => return Err(fault),
            // It does not understand the question, and knows of nothing.
            Err(_) => Instant::now(),
        };
        // Another owner than before does not know what was made then.
        Ok(Found::NotMadeSince(made_at.max(job.same_since())))
    }

    /// Opens a file at its owner; nothing where that is this node.
    ///
    /// # Errors
    /// What the owner says.
    pub async fn open(&self, key: &str, mode: Mode, creates: bool) -> Result<Option<There>, Fault> {
        let open = ByName::Open { mode, creates };
        let Some((node, mut answer)) = self.ask(key, open).await? else {
            return Ok(None);
        };
        let there = (|from: &mut Bytes| {
            let file = messages::file(from)?;
            let is_new = messages::flag(from)?;
            Some(There {
                place: Place { node, file },
                is_new,
                seen: messages::seen(from)?,
            })
        })(&mut answer);
        there
            .map(Some)
            .ok_or_else(|| messages::not_understood(&answer))
    }

    /// The owner says what a file is like.
    pub fn learn(&self, ino: u64, seen: &Seen) {
        let core = &self.core;
        let at = Instant::now();
        let place = {
            let mut nodes = core.nodes();
            // The answer may come when the name is gone.
            let Some(file) = nodes.file(ino).filter(|file| !file.is_gone) else {
                return;
            };
            file.info = seen.info.clone();
            file.at = at;
            file.is_told = true;
            file.is_draft_there = seen.is_draft;
            nodes.get(ino).map(|node| (node.parent, node.name.clone()))
        };
        let is_published = !seen.is_draft && seen.info.etag != ETag::new("");
        if let Some((parent, name)) = place.filter(|_| is_published) {
            core.learn(parent, &name, at, Some(Listed::File(seen.info.clone())));
        }
    }
}

/// The key of a name.
///
/// # Errors
/// A folder that is gone.
pub fn key(core: &Core, at: Name<'_>) -> Result<String, Fault> {
    Ok(format!("{}{}", core.key(at.parent)?, at.name))
}

/// What the owner of a key says of it, and when; nothing where that is this node.
async fn look_at_owner(job: &Job, key: &str) -> Result<Option<(Looked, Instant)>, Fault> {
    let question = Ask::Name {
        node: job.own() as u64,
        what: ByName::Look,
        key: key.to_owned(),
    };
    let Some((_, answer)) = job.ask_owner(&subject(key), question.write()).await else {
        return Ok(None);
    };
    Ok(Some((messages::looked(answer)?, Instant::now())))
}
