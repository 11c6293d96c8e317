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
use crate::mode::Mode;
use crate::names::Listed;
use crate::shared::messages::{self, Ask, ByName, Seen};
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
        match self.ask(key, ByName::Look).await {
            Ok(Some((_, mut answer))) => match messages::seen(&mut answer) {
                Some(seen) => Ok(Some(seen)),
                None => Err(messages::not_understood(&answer)),
            },
            Ok(None) => Ok(None),
            Err(fault) if fault.reason == Reason::NotFound => Ok(None),
            Err(fault) => Err(fault),
        }
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
            if let Some(file) = nodes.file(ino).filter(|file| !file.is_gone) {
                file.info = seen.info.clone();
                file.at = at;
            }
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

/// Specified (5.1).
fn subject(key: &str) -> Vec<u8> {
    [b"W", key.as_bytes()].concat()
}
