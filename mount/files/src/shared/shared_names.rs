// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls of this node's programs on names of files that several nodes may write.
//! `mount/daemon` calls them.

use std::time::{Duration, Instant};

use crate::attribute_object::Modified;
use crate::attributes::Entry;
use crate::changes::Name;
use crate::fault::{Fault, Reason};
use crate::job_store::JobStore;
use crate::names::{self, Listed};
use crate::nodes;
use crate::open_names;
use crate::search;
use crate::shared::folder_moves;
use crate::shared::messages::{self, ByName, Call, Seen};
use crate::shared::others::{Found, key};
use crate::shared::shared_files::SharedFiles;
use crate::shared::shared_times;

/// Chosen: how long a rename waits for who still writes the file, as for other renames.
const RENAME_WAIT: Duration = Duration::from_secs(5);
/// Chosen: how much younger than needed a listing may be, so that it also serves for what is heard
/// of names that were made about then. How long answers take makes them differ.
const SLACK: Duration = Duration::from_millis(100);
/// Chosen: between two looks.
const RENAME_PAUSE: Duration = Duration::from_millis(50);

/// As [`crate::BucketFiles::lookup`].
///
/// # Errors
/// As there; those of the owner.
pub async fn lookup(shared: &SharedFiles, parent: u64, name: &str) -> Result<Entry, Fault> {
    let found = shared.files.lookup(parent, name).await;
    let is_missing = |fault: &Fault| fault.reason == Reason::NotFound;
    if let Some(names) = &shared.files.job_store
        && found.as_ref().is_err_and(is_missing)
        && (names.may_be_new() || shared.others.job.is_some())
    {
        return look_for(shared, names, Name { parent, name }).await;
    }
    if shared.others.job.is_none() {
        return found;
    }
    match found {
        Ok(mut entry) => {
            let ino = entry.attributes.ino;
            if shared.others.drafts().contains(&ino) {
                return refresh(shared, ino).await;
            }
            if shared.owned.has_writers(ino) {
                entry.valid = Duration::ZERO;
            }
            Ok(entry)
        }
        Err(fault) => Err(fault),
    }
}

/// Asks the owner of a name that this node does not find, and the store if another node may have
/// made the name after what this node knows.
async fn look_for(shared: &SharedFiles, store: &JobStore, at: Name<'_>) -> Result<Entry, Fault> {
    let core = shared.core();
    let key = key(core, at)?;
    if names::check_key(&key).is_err() {
        // No store has it.
        return Err(Reason::NotFound.into());
    }
    let made_at = match shared.others.look_for(store, &key).await? {
        Found::Seen(seen) => return Ok(enter(shared, at, &seen)),
        Found::NotMadeSince(moment) => moment,
    };
    let missing_at = search::missing_at(core, at.parent, at.name);
    if !store.may_be_new() || missing_at.is_some_and(|asked| store.shows(asked, made_at)) {
        return Err(Reason::NotFound.into());
    }
    store.freshen((made_at + SLACK).min(Instant::now()));
    if let Some(folder) = core.nodes().folder(at.parent) {
        folder.forget(at.name);
    }
    shared.files.lookup(at.parent, at.name).await
}

/// As [`crate::BucketFiles::attributes`].
///
/// # Errors
/// As there; those of the owner.
pub async fn attributes(shared: &SharedFiles, ino: u64) -> Result<Entry, Fault> {
    if shared.others.drafts().contains(&ino) {
        return refresh(shared, ino).await;
    }
    let mut entry = shared.files.attributes(ino).await?;
    if shared.others.job.is_some() && shared.owned.has_writers(ino) {
        entry.valid = Duration::ZERO;
    }
    Ok(entry)
}

/// What a file that another node had is like now.
async fn refresh(shared: &SharedFiles, ino: u64) -> Result<Entry, Fault> {
    let open = shared.remote.all().into_iter().find(|file| file.ino == ino);
    let seen = match &open {
        Some(file) => Some(file.do_call(Call::Look).await?),
        None => shared.others.look(&shared.core().key(ino)?).await?,
    };
    match &seen {
        Some(seen) => shared.others.learn(ino, seen),
        None => {
            shared.others.drafts().remove(&ino);
            if let Some(file) = shared.core().nodes().file(ino) {
                file.is_draft_there = false;
            }
            return shared.files.attributes(ino).await;
        }
    }
    if open.is_none() && seen.is_some_and(|seen| !seen.is_draft) {
        shared.others.drafts().remove(&ino);
    }
    let attributes = shared.core().attributes_in(&shared.core().nodes(), ino);
    Ok(Entry {
        attributes: attributes.ok_or(Reason::Stale)?,
        valid: Duration::ZERO,
    })
}

/// The node of a name of which the owner knows.
fn enter(shared: &SharedFiles, at: Name<'_>, seen: &Seen) -> Entry {
    let listed = Listed::File(seen.info.clone());
    let entry = shared
        .core()
        .enter(at.parent, at.name, &listed, Instant::now());
    let ino = entry.attributes.ino;
    shared.others.learn(ino, seen);
    if seen.is_draft {
        shared.others.drafts().insert(ino);
    }
    Entry {
        valid: Duration::ZERO,
        ..entry
    }
}

/// As [`crate::BucketFiles::unlink`]; the owner of the file does it.
///
/// # Errors
/// As there; those of the owner.
pub async fn unlink(shared: &SharedFiles, old: Name<'_>) -> Result<(), Fault> {
    if shared.others.job.is_none() {
        return shared.files.unlink(old).await;
    }
    let key = key(shared.core(), old)?;
    let ino = shared.core().nodes().find(old.parent, old.name);
    let is_elsewhere = !shared.others.is_own(&key);
    if let Some(ino) = ino.filter(|_| is_elsewhere) {
        // Who reads it on this node reads on.
        open_names::hide(&shared.files.open_files, ino).await?;
    }
    match shared.others.ask(&key, ByName::Unlink).await {
        Ok(None) => unlink_here(shared, old, &key).await,
        Ok(Some(_)) => {
            shared.files.unlinked(old);
            Ok(())
        }
        Err(fault) => {
            if let Some(ino) = ino {
                open_names::stay(&shared.files.open_files, ino);
            }
            Err(fault)
        }
    }
}

/// The same of a key that this node owns, or that nobody does. What was published is forgotten once
/// the name is gone: a file that is being closed meanwhile is noted as published until then.
pub(crate) async fn unlink_here(
    shared: &SharedFiles,
    old: Name<'_>,
    key: &str,
) -> Result<(), Fault> {
    let unlinked = shared.files.unlink(old).await;
    shared.owned.forget(key);
    unlinked
}

/// As [`crate::BucketFiles::remove_folder`]; names that other nodes removed before are not in it.
///
/// # Errors
/// As there.
pub async fn remove_folder(shared: &SharedFiles, old: Name<'_>) -> Result<(), Fault> {
    if let Some(names) = &shared.files.job_store {
        names.freshen(Instant::now());
    }
    shared.files.remove_folder(old).await
}

/// As [`crate::BucketFiles::rename`]; where nodes share files, of those that nobody has open for
/// writing.
///
/// # Errors
/// As there; `Busy` where somebody has one of the two open for writing; those of the owner.
pub async fn rename(
    shared: &SharedFiles,
    old: Name<'_>,
    new: Name<'_>,
    may_replace: bool,
) -> Result<(), Fault> {
    if let Some(names) = &shared.files.job_store {
        folder_moves::prepare(shared, names, old).await?;
    }
    if shared.others.job.is_some() {
        rename_together(shared, old, new, may_replace).await?;
    } else {
        shared.files.rename(old, new, may_replace).await?;
    }
    if let Some(names) = &shared.files.job_store
        && let Ok(key) = key(shared.core(), new)
    {
        // A folder may have no object of its name.
        names.made(&key).await;
    }
    Ok(())
}

async fn rename_together(
    shared: &SharedFiles,
    old: Name<'_>,
    new: Name<'_>,
    may_replace: bool,
) -> Result<(), Fault> {
    let keys = [key(shared.core(), old)?, key(shared.core(), new)?];
    let began = Instant::now();
    for (key, is_old) in keys.iter().zip([true, false]) {
        let modified = loop {
            match changes(shared, key).await {
                Ok(modified) => break modified,
                Err(fault) if fault.reason != Reason::Busy || began.elapsed() > RENAME_WAIT => {
                    return Err(fault);
                }
                Err(_) => tokio::time::sleep(RENAME_PAUSE).await,
            }
        };
        if let Some(modified) = modified.filter(|_| is_old) {
            shared_times::took(shared, old, modified);
        }
    }
    let renamed = shared.files.rename(old, new, may_replace).await;
    for key in &keys {
        let _ = changes(shared, key).await;
    }
    renamed
}

/// The owner of a key forgets what it knows of it, if nobody has it open for writing. If that is
/// another node, the time that was set for the content and that it has not written yet.
async fn changes(shared: &SharedFiles, key: &str) -> Result<Option<Modified>, Fault> {
    match shared.others.ask(key, ByName::Changes).await? {
        Some((_, mut answer)) => {
            messages::modified(&mut answer).ok_or_else(|| messages::not_understood(&answer))
        }
        None => changes_here(shared, key).map(|()| None),
    }
}

/// The same of this node.
pub(crate) fn changes_here(shared: &SharedFiles, key: &str) -> Result<(), Fault> {
    let core = shared.core();
    shared.owned.forget(key);
    let path = key.strip_prefix(&*core.settings.prefix).unwrap_or(key);
    let ino = nodes::find_path(&core.nodes(), path);
    if ino.is_some_and(|ino| shared.files.open_files.draft(ino).is_some()) {
        let text = format!(
            "`{key}` is open for writing, and files of a mount with --shared-writes cannot be \
                 renamed then; close it first"
        );
        return Err(Fault::because(Reason::Busy, text));
    }
    Ok(())
}
