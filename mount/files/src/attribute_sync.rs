// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads and writes attribute objects. An object is read when a listing shows that its content
//! changed. Changes made here are written a moment later, all changes of a folder in one request.
//!
//! Two mounts may write at once. The condition of the second request then fails; its mount reads
//! the object and writes its names again. [`crate::search`], [`crate::folders`] and
//! [`crate::attribute_calls`] call this.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use weft_store::{Condition, Failure, ListRequest, ObjectInfo};

use crate::attribute_object;
use crate::attribute_requests;
use crate::core::Core;
use crate::facts::Folder;
use crate::fault::{Fault, Reason};
use crate::known_attributes::{Draft, Need};
use crate::names::{ATTRIBUTES, Listed};
use crate::nodes::ROOT;
use crate::object_copies::is_otherwise;

/// Chosen: the longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Chosen: how often another mount may be quicker, in one attempt.
const ROUNDS: usize = 16;

/// Has the attributes in a folder no older than the time to live.
///
/// # Errors
/// What the store said.
pub async fn ensure(core: &Core, folder: u64) -> Result<(), Fault> {
    if need(core, folder, core.settings.ttl) == Need::Nothing {
        return Ok(());
    }
    let _turn = core.attribute_turns.take(folder).await;
    // What came while this waited is young enough also where nothing is believed for any time.
    load(core, folder, core.settings.ttl).await
}

/// The same, within the turn.
async fn load(core: &Core, folder: u64, ttl: Duration) -> Result<(), Fault> {
    let asked = Instant::now();
    for _ in 0..ROUNDS {
        match need(core, folder, ttl.max(asked.elapsed())) {
            Need::Nothing => return Ok(()),
            Need::Look => look(core, folder).await?,
            Need::Load(info) => get(core, folder, &info).await?,
        }
    }
    let text = format!(
        "`{}` changes faster than it can be read",
        object_key(core, folder)?
    );
    Err(Fault::because(Reason::Broken, text))
}

/// Asks the store what the attributes in a folder are now.
///
/// # Errors
/// What the store said.
pub async fn refresh(core: &Core, folder: u64) -> Result<(), Fault> {
    let _turn = core.attribute_turns.take(folder).await;
    look(core, folder).await?;
    load(core, folder, core.settings.ttl).await
}

fn need(core: &Core, folder: u64, ttl: Duration) -> Need {
    let mut nodes = core.nodes();
    let Some(folder) = nodes.folder(folder) else {
        return Need::Nothing;
    };
    let is_young = |at: Instant| at.elapsed() <= ttl || folder.is_believed(at, Duration::ZERO);
    folder.attributes.need(is_young)
}

fn object_key(core: &Core, folder: u64) -> Result<String, Fault> {
    Ok(format!("{}{ATTRIBUTES}", core.key(folder)?))
}

async fn look(core: &Core, folder: u64) -> Result<(), Fault> {
    let at = Instant::now();
    let object = core.store.find(&object_key(core, folder)?).await?;
    if let Some(known) = core.nodes().folder(folder) {
        if object.is_none() {
            known.attributes.absent();
        }
        known.attributes.seen(at, object);
        known.own_specials();
    }
    Ok(())
}

async fn get(core: &Core, folder: u64, info: &ObjectInfo) -> Result<(), Fault> {
    let key = object_key(core, folder)?;
    let names = match attribute_requests::get(&*core.store, &key, info).await {
        Err(error) if is_otherwise(&error) => return look(core, folder).await,
        got => got?,
    };
    let names = names.inspect_err(|why| {
        core.tell(&format!(
            "`{key}` holds no attributes that this mount can read: {why}. It is left alone; modes, \
             owners and links in that folder do not show, and cannot be changed"
        ));
    });
    if let Some(known) = core.nodes().folder(folder) {
        known.attributes.loaded(&info.etag, names.ok());
        known.own_specials();
    }
    Ok(())
}

/// Attributes in a folder were changed: they are written in a moment, behind the program.
pub fn write_soon(core: &Arc<Core>, folder: u64) {
    {
        let mut nodes = core.nodes();
        let Some(known) = nodes.folder(folder) else {
            return;
        };
        if known.attributes.is_waiting || !known.attributes.is_changed() {
            return;
        }
        known.attributes.is_waiting = true;
    }
    let core = Arc::clone(core);
    let runtime = core.runtime.clone();
    runtime.spawn(async move {
        let delay = core.settings.writes.attributes_after;
        let mut pause = delay;
        loop {
            tokio::time::sleep(pause).await;
            match write(&core, folder).await {
                Ok(()) => {}
                // They were given up, with the folder.
                Err(fault) if !is_changed(&core, folder) => core.tell(&fault.to_string()),
                Err(fault) => {
                    if pause == delay {
                        core.tell(&format!("attributes are written again later: {fault}"));
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            }
            let mut nodes = core.nodes();
            let Some(known) = nodes.folder(folder) else {
                return;
            };
            if !known.attributes.is_changed() {
                known.attributes.is_waiting = false;
                nodes.forget(folder, 0);
                return;
            }
            pause = delay;
        }
    });
}

/// Writes what was changed in a folder, and returns when the store has it.
///
/// # Errors
/// What the store said; `NoSpace` where a folder has too many attributes; `NotFound` where somebody
/// else has renamed or removed the folder.
pub async fn write(core: &Core, folder: u64) -> Result<(), Fault> {
    let is_moved_by = |moving| {
        let nodes = core.nodes();
        folder == moving || nodes.is_below(folder, moving)
    };
    while is_changed(core, folder) {
        core.moving.wait(is_moved_by).await;
        let _turn = core.attribute_turns.take(folder).await;
        if !core.moving.has(is_moved_by) {
            return write_in_turn(core, folder).await;
        }
    }
    Ok(())
}

fn is_changed(core: &Core, folder: u64) -> bool {
    let mut nodes = core.nodes();
    let known = nodes.folder(folder);
    known.is_some_and(|known| known.attributes.is_changed())
}

async fn write_in_turn(core: &Core, folder: u64) -> Result<(), Fault> {
    for _ in 0..ROUNDS {
        let draft = {
            let mut nodes = core.nodes();
            nodes
                .folder(folder)
                .and_then(|known| known.attributes.draft())
        };
        let Some(draft) = draft else {
            return Ok(());
        };
        let at = Instant::now();
        match put(core, folder, &draft).await {
            Ok(object) => {
                if let Some(known) = core.nodes().folder(folder) {
                    known.attributes.written(&draft, at, object);
                }
                return Ok(());
            }
            Err(fault) if fault.reason == Reason::Stale => {
                // Another mount was quicker: its names stay, and those of here come on top.
                look(core, folder).await?;
                load(core, folder, Duration::from_secs(60)).await?;
            }
            Err(fault) => return Err(fault),
        }
    }
    Err(Reason::Busy.into())
}

async fn put(core: &Core, folder: u64, draft: &Draft) -> Result<Option<ObjectInfo>, Fault> {
    let key = object_key(core, folder)?;
    let store = &core.store;
    let when = match &draft.object {
        Some(etag) => Condition::IfMatch(etag.clone()),
        None => Condition::IfAbsent,
    };
    if draft.names.is_empty() {
        if draft.object.is_some() {
            match store.delete(&key, &when).await {
                Err(error) if error.failure == Failure::Unsupported => {
                    store.delete(&key, &Condition::Always).await?;
                }
                // Another mount removed it before.
                Err(error) if error.failure == Failure::Missing => {}
                deleted => deleted?,
            }
        }
        return Ok(None);
    }
    if draft.object.is_none() {
        must_be_there(core, folder).await?;
    }
    let body = attribute_object::write(draft.names.clone());
    let body = body.map_err(|why| Fault::because(Reason::NoSpace, why.to_string()))?;
    let size_bytes = body.len() as u64;
    let put = match attribute_requests::put(&**store, &key, body, &when).await {
        // The object that was there is gone.
        Err(error) if error.failure == Failure::Missing => return Err(Reason::Stale.into()),
        put => put,
    };
    Ok(Some(ObjectInfo {
        size_bytes,
        etag: put?,
        modified: SystemTime::now(),
        is_archived: false,
    }))
}

/// Fails where the store has nothing of a folder by now, and where it is no folder that this mount
/// emptied: its attributes would make it again.
async fn must_be_there(core: &Core, folder: u64) -> Result<(), Fault> {
    let prefix = core.key(folder)?;
    let above = {
        let mut nodes = core.nodes();
        let above = nodes.get(folder);
        let above = above.map(|node| (node.parent, node.name.clone()));
        let Some((parent, name)) = above.filter(|_| folder != ROOT) else {
            return Ok(());
        };
        let is_own = |facts: &mut Folder| facts.own.contains_key(&name);
        let has_own = |facts: &mut Folder| facts.has_own_objects();
        if nodes.folder(parent).is_some_and(is_own) || nodes.folder(folder).is_some_and(has_own) {
            return Ok(());
        }
        (parent, name)
    };
    let request = ListRequest {
        prefix: prefix.clone(),
        by_folder: false,
        limit: 1,
        ..ListRequest::default()
    };
    // A job's mounts may remember that the folder was not there before.
    let store = &core.renames.fresh().store;
    if !store.list(&request).await?.objects.is_empty() {
        return Ok(());
    }
    let mut nodes = core.nodes();
    if let Some(known) = nodes.folder(folder) {
        known.attributes.clear();
        known.own_specials();
    }
    if let Some(facts) = nodes.folder(above.0) {
        facts.forget(&above.1);
    }
    let text = format!(
        "`{prefix}` is gone, since somebody else renamed or removed it: modes, owners and times \
         that were set in it a moment before are lost"
    );
    Err(Fault::because(Reason::NotFound, text))
}

/// Writes what was changed in a folder and in those below it, which is being renamed: nobody else
/// writes there meanwhile.
///
/// # Errors
/// What the store said.
pub async fn write_below(core: &Core, folder: u64) -> Result<(), Fault> {
    let changed = {
        let nodes = core.nodes();
        let mut changed = nodes.with_changed_attributes();
        changed.retain(|ino| *ino == folder || nodes.is_below(*ino, folder));
        changed
    };
    for ino in changed {
        let _turn = core.attribute_turns.take(ino).await;
        write_in_turn(core, ino).await?;
    }
    Ok(())
}

/// A folder that is empty is removed: so is its object, and nothing of it is written any more.
///
/// # Errors
/// What the store said.
pub async fn remove(core: &Core, folder: u64) -> Result<(), Fault> {
    let _turn = core.attribute_turns.take(folder).await;
    let key = object_key(core, folder)?;
    let has_object = match core.nodes().folder(folder) {
        Some(known) => {
            let has_object = known.attributes.has_object();
            known.attributes.clear();
            has_object
        }
        None => true,
    };
    if has_object {
        core.store.delete(&key, &Condition::Always).await?;
    }
    Ok(())
}

/// What a listing's first page showed of a folder's object.
pub fn note_seen(core: &Core, folder: u64, at: Instant, object: Option<ObjectInfo>) {
    if let Some(known) = core.nodes().folder(folder) {
        known.attributes.seen(at, object);
    }
}

/// Whether a name stands for no object.
pub fn special(core: &Core, folder: u64, name: &str) -> Option<Listed> {
    let mut nodes = core.nodes();
    let attribute = nodes.folder(folder)?.attributes.get(name)?;
    attribute.special.clone().map(Listed::Special)
}

/// The owner of a file that several nodes write keeps the time of its content: what was set here
/// before counts no more, and what the owner writes does.
pub(crate) fn leave_time(core: &Core, ino: u64) {
    let mut nodes = core.nodes();
    let Some((folder, name)) = nodes.attribute_place(ino) else {
        return;
    };
    if let Some(folder) = nodes.folder(folder) {
        folder.attributes.leave_time_to_other(&name);
    }
}
