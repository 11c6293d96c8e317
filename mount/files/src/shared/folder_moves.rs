// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node that renames a folder has the other nodes of the job write first what their programs set
//! in it a moment ago: times, modes and owners that are written a second later would be lost with
//! the old name. docs/job-cache.md, clause 7. [`crate::shared::shared_names`] asks,
//! [`crate::shared::answers`] answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::attribute_sync;
use crate::changes::Name;
use crate::core::Core;
use crate::fault::{Fault, Reason};
use crate::job::ELSE;
use crate::job_store::JobStore;
use crate::nodes::{self, ROOT};
use crate::shared::messages::{self, Ask, ByName};
use crate::shared::others::key;
use crate::shared::shared_files::SharedFiles;

/// Specified (7.2): how long a node tries to write before it answers that it could not. Less than
/// a node waits for an answer.
const WAIT: Duration = Duration::from_secs(5);

/// Has all other nodes write what was set in a folder, and what was set for the folder itself.
///
/// # Errors
/// What a node says that could not write it: a rename would lose it.
pub(crate) async fn prepare(
    shared: &SharedFiles,
    store: &Arc<JobStore>,
    old: Name<'_>,
) -> Result<(), Fault> {
    let core = shared.core();
    let is_folder = {
        let mut nodes = core.nodes();
        let known = nodes.find(old.parent, old.name);
        known.is_some_and(|ino| nodes.folder(ino).is_some())
    };
    if !is_folder {
        return Ok(());
    }
    let question = Ask::Name {
        node: store.job.own() as u64,
        what: ByName::Moves,
        key: key(core, old)?,
    };
    let mut has_written = false;
    for answer in store.job.ask_all(question.write()).await {
        if answer.first() == Some(&ELSE) {
            // A mount of another version: nothing goes between it and this one.
            continue;
        }
        let answer = messages::answered(answer)?.unwrap_or_default();
        has_written |= answer.first().is_some_and(|flag| *flag != 0);
    }
    if has_written {
        // The folder's own are in the folder above: they go on under the new name from here.
        store.freshen(Instant::now());
        attribute_sync::refresh(core, old.parent).await?;
    }
    Ok(())
}

/// Another node is about to rename the folder `path`, below the mount's prefix: whether anything
/// was written that was set in it here.
///
/// # Errors
/// What the store said; `Busy` where that takes long.
pub(crate) async fn write_before(core: &Core, path: &str) -> Result<Bytes, Fault> {
    let changed = changed(core, path);
    let has_written = !changed.is_empty();
    let write = async {
        for folder in changed {
            attribute_sync::write(core, folder).await?;
        }
        Ok(())
    };
    let written = tokio::time::timeout(WAIT, write).await;
    written.unwrap_or_else(|_| {
        let text = format!(
            "what was set in `{path}` on another host is not in the store after {} s",
            WAIT.as_secs()
        );
        Err(Fault::because(Reason::Busy, text))
    })?;
    Ok(Bytes::from(vec![u8::from(has_written)]))
}

/// The folders where something is to be written: the folder above, the folder, and those below.
fn changed(core: &Core, path: &str) -> Vec<u64> {
    let nodes = core.nodes();
    let above = match path.rsplit_once('/') {
        Some((above, _)) => nodes::find_path(&nodes, above),
        None => Some(ROOT),
    };
    let folder = nodes::find_path(&nodes, path);
    let is_of = |ino: &u64| {
        let is_below = |folder| *ino == folder || nodes.is_below(*ino, folder);
        Some(*ino) == above || folder.is_some_and(is_below)
    };
    let mut changed = nodes.with_changed_attributes();
    changed.retain(is_of);
    changed
}
