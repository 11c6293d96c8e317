// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Renames of overlapping folders: only one at a time is carried out. docs/mount-names.md specifies
//! which goes first. [`crate::renames`] asks before it begins, [`crate::renames::watch`] before it
//! takes a record over.

use std::time::SystemTime;

use crate::fault::{Fault, Reason};
use crate::names::RENAMES;
use crate::renames::moving;
use crate::renames::record::{self, Record, is_id};
use crate::staging::ways::Ways;

/// A rename that is under way, by any mount.
#[derive(Debug)]
pub struct Other {
    /// Its folders; prefixes below the mount's.
    pub from: String,
    /// The same, of the new name.
    pub to: String,
    /// Its record's own name.
    id: String,
    /// When that was written, by the store's clock.
    written: SystemTime,
}

/// Whether one of two folders is the other, or lies in it; both end in `/`.
pub fn overlap(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// What the store shows of records now.
struct Seen {
    /// When the own one was written, if it is there.
    own: Option<SystemTime>,
    others: Vec<Other>,
}

/// The records but `own` that are about one of `folders`, one in it or one above it, as the store
/// shows them now. What is no record counts for nothing.
///
/// # Errors
/// What the store said.
pub async fn find(
    ways: &Ways,
    prefix: &str,
    own: &str,
    folders: [&str; 2],
) -> Result<Vec<Other>, Fault> {
    Ok(look(ways, prefix, own, folders).await?.others)
}

/// Whether a record about the same folders goes before the one that is named `own`.
///
/// # Errors
/// What the store said.
pub async fn is_behind(
    ways: &Ways,
    prefix: &str,
    own: &str,
    record: &Record,
) -> Result<bool, Fault> {
    let seen = look(ways, prefix, own, [&record.from, &record.to]).await?;
    let is_older = |written| {
        let place = (written, own);
        let before = |other: &Other| (other.written, &*other.id) < place;
        seen.others.iter().any(before)
    };
    Ok(seen.own.is_some_and(is_older))
}

async fn look(ways: &Ways, prefix: &str, own: &str, folders: [&str; 2]) -> Result<Seen, Fault> {
    let place = format!("{prefix}{RENAMES}/");
    let mut seen = Seen {
        own: None,
        others: Vec::new(),
    };
    for (id, info) in moving::list(ways, &place).await? {
        if id == own {
            seen.own = Some(info.modified);
            continue;
        }
        if !is_id(&id) {
            continue;
        }
        let record = match record::read_found(ways, &format!("{place}{id}"), &info).await {
            Ok(Some(record)) => record,
            // It was finished just now, or it is none.
            Ok(None) => continue,
            Err(fault) if fault.reason == Reason::Invalid => continue,
            Err(fault) => return Err(fault),
        };
        let meets = |folder: &&str| overlap(folder, &record.from) || overlap(folder, &record.to);
        if folders.iter().any(meets) {
            seen.others.push(Other {
                from: record.from,
                to: record.to,
                id,
                written: info.modified,
            });
        }
    }
    Ok(seen)
}

/// Another rename is in the way.
pub fn busy(other: &Other) -> Fault {
    let text = format!(
        "the rename of `{}` to `{}` is under way, and must end first",
        other.from, other.to
    );
    Fault::because(Reason::Busy, text)
}
