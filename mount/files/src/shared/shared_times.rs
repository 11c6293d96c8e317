// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times that programs set for the content of files that several nodes may write. While somebody
//! has such a file open for writing, its owner keeps the time: the owner alone knows what is
//! written after it, and which object is made of the file. `mount/daemon` calls [`change`].

use crate::attribute_object::{Modified, Time};
use crate::attribute_sync;
use crate::attributes::Change;
use crate::changes::Name;
use crate::fault::{Fault, Reason};
use crate::shared::messages::{self, ByName, Call, Seen};
use crate::shared::shared_files::SharedFiles;

/// As [`crate::attribute_calls::AttributeCalls::change`].
///
/// # Errors
/// As there; those of the owner.
pub async fn change(shared: &SharedFiles, ino: u64, change: &Change) -> Result<(), Fault> {
    let calls = &shared.files.attribute_calls;
    let is_file = shared.core().nodes().file(ino).is_some();
    let Some(at) = change.modified.filter(|_| is_file) else {
        return calls.change(ino, change).await;
    };
    let mut rest = *change;
    if set_there(shared, ino, Time::of(at)).await? {
        attribute_sync::leave_time(shared.core(), ino);
        rest.modified = None;
    }
    calls.change(ino, &rest).await
}

/// Has the owner of a file keep a time; false where that is this node, or nobody writes the file.
async fn set_there(shared: &SharedFiles, ino: u64, at: Time) -> Result<bool, Fault> {
    if shared.others.job.is_none() {
        return Ok(false);
    }
    let open = shared.remote.all().into_iter().find(|file| file.ino == ino);
    if let Some(file) = open {
        match file.do_call(Call::SetTime(at)).await {
            Ok(seen) => {
                shared.others.learn(ino, &seen);
                return Ok(true);
            }
            // It is being closed: the kernel does not wait for that.
            Err(fault) if fault.reason == Reason::Stale => {}
            Err(fault) => return Err(fault),
        }
    }
    if shared
        .core()
        .nodes()
        .file(ino)
        .is_none_or(|file| file.is_gone)
    {
        return Ok(false);
    }
    let key = shared.core().key(ino)?;
    let seen = match shared.others.ask(&key, ByName::SetTime(at)).await {
        Ok(None) => return Ok(false),
        Err(fault) if fault.reason == Reason::NotFound => return Ok(false),
        Ok(Some((_, mut answer))) => {
            messages::seen(&mut answer).ok_or_else(|| messages::not_understood(&answer))?
        }
        Err(fault) => return Err(fault),
    };
    shared.others.learn(ino, &seen);
    Ok(seen.is_draft)
}

/// The same of this node, for others.
pub(crate) async fn set_here(shared: &SharedFiles, ino: u64, at: Time) -> Result<(), Fault> {
    let change = Change {
        modified: Some(at.system()),
        ..Change::default()
    };
    shared.files.attribute_calls.change(ino, &change).await
}

/// What this node knows of a file, with the time that was set for its content.
pub(crate) fn seen(shared: &SharedFiles, ino: u64, is_draft: bool) -> Option<Seen> {
    let core = shared.core();
    let mut nodes = core.nodes();
    let modified = core.attributes_in(&nodes, ino)?.modified;
    let mut info = nodes.file(ino)?.info.clone();
    info.modified = modified;
    Some(Seen { is_draft, info })
}

/// A name is about to get another content, or its content another name, by a rename of another
/// node: that node writes the time that was set for it, and this one nothing of the name.
pub(crate) fn take(shared: &SharedFiles, of: Name<'_>) -> Option<Modified> {
    let mut nodes = shared.core().nodes();
    let attributes = &mut nodes.folder(of.parent)?.attributes;
    let attribute = attributes.get(of.name).cloned();
    attributes.leave_to_others(of.name);
    attribute?.modified
}

/// The owner of a name's content leaves the time that was set for it to this node.
pub(crate) fn took(shared: &SharedFiles, at: Name<'_>, modified: Modified) {
    let core = shared.core();
    let mut nodes = core.nodes();
    let ino = nodes.find(at.parent, at.name);
    let is_of = |ino: &u64| {
        let file = nodes.file(*ino);
        file.is_some_and(|file| *file.info.etag.as_str() == *modified.etag)
    };
    let Some(ino) = ino.filter(is_of) else {
        return;
    };
    let mut attribute = nodes.attribute(ino).cloned().unwrap_or_default();
    attribute.modified = Some(modified);
    let folder = nodes.set_attribute(ino, attribute);
    drop(nodes);
    if let Some(folder) = folder {
        attribute_sync::write_soon(core, folder);
    }
}
