// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rename of a folder that was begun here, and how far it is. [`crate::renames`] begins it,
//! [`crate::renames::finishing`] goes on with one that broke off.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::renames::copies::Copies;
use crate::renames::hold::Hold;
use crate::renames::overlaps::overlap;
use crate::renames::record::Record;

/// A rename that broke off.
pub struct Left {
    /// Of its record.
    pub id: String,
    /// What is to be done.
    pub record: Record,
    /// Says so to the next mount of this host.
    pub note: PathBuf,
    /// Copies that were sent.
    pub copies: Mutex<Copies>,
    /// Locked while somebody goes on with it.
    pub work: tokio::sync::Mutex<Work>,
}

/// How far a rename is that was begun here.
pub struct Work {
    /// This mount's.
    pub hold: Hold,
    /// No other rename is in the way.
    pub may_go: bool,
    /// Another mount goes on with it, or has ended it.
    pub is_elsewhere: bool,
}

impl Left {
    /// Whether one of these folders is in a folder of this rename, or has one of them in it. All
    /// are prefixes below the mount's, and end in `/`.
    pub fn concerns(&self, folders: &[String]) -> bool {
        let ours = [&self.record.from, &self.record.to];
        folders
            .iter()
            .any(|folder| ours.iter().any(|one| overlap(one, folder)))
    }

    /// What is known of its copies.
    pub fn copies(&self) -> Copies {
        let copies = self.copies.lock();
        copies.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nobody here knows which copies were made.
    pub fn forget_copies(&self) {
        let copies = self.copies.lock();
        *copies.unwrap_or_else(PoisonError::into_inner) = Copies::of_other();
    }
}
