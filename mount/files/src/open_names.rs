// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeps open files right when their names change or are removed. [`crate::bucket_files`] calls
//! this around the calls of [`crate::changes`].

use std::sync::Arc;

use weft_store::{Condition, ETag};

use crate::fault::{Fault, Reason};
use crate::open_files::{OpenFile, OpenFiles};

/// The files in a folder, and in folders of it, that are open or wait to be published.
pub fn open_below(files: &OpenFiles, folder: u64) -> Vec<u64> {
    let mut below = files.inos();
    let nodes = files.core.nodes();
    below.retain(|ino| nodes.is_below(*ino, folder));
    below.sort_unstable();
    below.dedup();
    below
}

/// Whether the store has nothing of a file that is being written, and shall have.
pub async fn is_only_here(files: &OpenFiles, ino: u64) -> bool {
    match files.draft(ino) {
        Some(draft) => draft.is_only_here().await,
        None => false,
    }
}

/// Publishes what is written to a node by anybody, for who renames it.
///
/// # Errors
/// Those of publishing.
pub async fn settle(files: &OpenFiles, ino: u64) -> Result<(), Fault> {
    match files.draft(ino) {
        Some(draft) => draft.settle().await,
        None => Ok(()),
    }
}

/// A file that waits to be published gets another name, without a copy; false where it must be
/// published first.
///
/// # Errors
/// What the system said of its log.
pub async fn rename_staged(
    files: &OpenFiles,
    ino: u64,
    key: &str,
    when: &Condition,
) -> Result<bool, Fault> {
    match files.draft(ino) {
        Some(draft) if draft.is_only_here().await => draft.rename(key, when).await,
        _ => Ok(false),
    }
}

/// The name of a file is about to go. Who has it open reads it on: of what the store has, a
/// copy is kept until the last one closes it. If the name goes, [`unlink`] follows, else [`stay`].
///
/// # Errors
/// What the store said to the copy.
pub async fn hide(files: &OpenFiles, ino: u64) -> Result<(), Fault> {
    let handles: Vec<Arc<OpenFile>> = files
        .open
        .all()
        .into_iter()
        .filter(|file| file.ino == ino)
        .collect();
    let draft = files.draft(ino);
    let is_only_here = is_only_here(files, ino).await;
    let old = files
        .core
        .nodes()
        .file(ino)
        .map(|file| file.info.etag.clone());
    // Of what was never published there is nothing that could be kept.
    let was_published = old.as_ref().is_some_and(|old| !old.as_str().is_empty());
    if !handles.is_empty() && !is_only_here && was_published {
        for file in &handles {
            // What this mount published since it was opened is what it reads on.
            let _ = files.reader(file);
        }
        // What is gone already cannot be kept.
        match files.hidden.hide(ino).await {
            Ok(version) => {
                files.core.gone(ino);
                for file in &handles {
                    file.read_of(&version, old.as_ref());
                }
                if let Some((draft, old)) = draft.as_ref().zip(old) {
                    draft.moved(&version, &old, false).await;
                }
            }
            Err(fault) if matches!(fault.reason, Reason::NotFound | Reason::Stale) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// The name of a file is gone: what is written is never published.
pub async fn unlink(files: &OpenFiles, ino: u64) {
    files.drafts.unlink(ino).await;
}

/// The name of a file stays after all, and what is written to it is published.
pub fn stay(files: &OpenFiles, ino: u64) {
    let mut nodes = files.core.nodes();
    if let Some(file) = nodes.file(ino) {
        file.is_gone = false;
    }
    nodes.name_again(ino);
}

/// A file was renamed; it had this entity tag. Who has it open reads and writes on.
pub async fn renamed(files: &OpenFiles, ino: u64, old: &ETag) {
    let Ok(version) = files.version(ino) else {
        return;
    };
    let version = Arc::new(version);
    for file in files.open.all().iter().filter(|file| file.ino == ino) {
        file.read_of(&version, Some(old));
    }
    if let Some(draft) = files.draft(ino) {
        draft.moved(&version, old, true).await;
    }
}
