// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open files go with their folder when its rename ends later than the call, or is ended by another
//! mount, and are read until then wherever their objects are. [`crate::renames`] and
//! [`crate::draft`] call this by the trait [`Follow`]; [`crate::bucket_files`] and
//! [`crate::open_files`] directly.

use std::slice;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use weft_store::{ObjectInfo, StoreError};

use crate::attribute_calls::AttributeCalls;
use crate::changes::Name;
use crate::core::Core;
use crate::fault::Fault;
use crate::nodes;
use crate::open_names;
use crate::open_table::OpenTable;
use crate::renames::copies::Copies;
use crate::renames::finishing;
use crate::renames::record::Record;
use crate::renames::trails::{Follow, Trail};
use crate::version::Version;

/// Chosen: how often it is asked whether another mount has ended a rename, while a file waits.
const LOOKS: u32 = 50;

/// Where an object was found.
enum Found {
    Old(ObjectInfo),
    New(ObjectInfo),
}

/// Where the object of a file may be that has a name, if that is not known.
fn trail_of(table: &OpenTable, ino: u64) -> Option<Trail> {
    let path = {
        let mut nodes = table.core.nodes();
        nodes.file(ino).filter(|file| !file.is_gone)?;
        nodes.path(ino)?
    };
    let unseen = table.unseen().get(&ino).cloned();
    unseen.or_else(|| finishing::trail(&table.core.renames, &path))
}

/// Asks for the object at both places. What is at the new one is taken for the copy `at_once`, or
/// else if it can be.
async fn find(core: &Core, trail: &Trail, at_once: bool) -> Result<Option<Found>, StoreError> {
    let key = |path: &str| format!("{}{path}", core.settings.prefix);
    if at_once {
        if let Some(info) = core.store.find(&key(&trail.new)).await? {
            return Ok(Some(Found::New(info)));
        }
    }
    let old = core.store.find(&key(&trail.old)).await?;
    if let Some(info) = old.filter(|info| info.etag == trail.etag) {
        return Ok(Some(Found::Old(info)));
    }
    if at_once {
        return Ok(None);
    }
    let new = core.store.find(&key(&trail.new)).await?;
    Ok(new.filter(|info| trail.is_copy(info)).map(Found::New))
}

/// The object of a file was seen.
fn see(core: &Core, ino: u64, info: ObjectInfo, at: Instant) {
    if let Some(file) = core.nodes().file(ino) {
        let before = std::mem::replace(&mut file.info, info);
        if file.is_draft {
            // A copy is newer than what was written into it.
            file.info.size_bytes = before.size_bytes;
            file.info.modified = before.modified;
        }
        file.at = at;
    }
}

/// A file was moved with its folder: those who have it open read and write on. If the store does
/// not show its object now, they ask for it again.
pub async fn go_along(table: &OpenTable, ino: u64, trail: Trail, at_once: bool) {
    let is_stored = !trail.etag.as_str().is_empty();
    let at = Instant::now();
    let found = match is_stored {
        true => find(&table.core, &trail, at_once).await,
        false => Ok(None),
    };
    table.unseen().remove(&ino);
    match found {
        Ok(Some(Found::New(info))) => see(&table.core, ino, info, at),
        Ok(Some(Found::Old(info))) => {
            nodes::move_to(&mut table.core.nodes(), ino, &trail.old);
            see(&table.core, ino, info, at);
        }
        // Of what others changed meanwhile its users hear when they read or publish it.
        Ok(None) => {}
        Err(_) => {
            table.unseen().insert(ino, trail.clone());
        }
    }
    open_names::renamed(table, ino, &trail.etag).await;
}

/// Looks for the object of a file that is not where it was: whether it may be read there. Its name
/// stays.
///
/// # Errors
/// What the store said.
pub async fn look_for(table: &OpenTable, ino: u64) -> Result<bool, Fault> {
    let Some(trail) = trail_of(table, ino) else {
        return Ok(false);
    };
    let at = Instant::now();
    let (place, info) = match find(&table.core, &trail, false).await? {
        Some(Found::Old(info)) => (&trail.old, info),
        Some(Found::New(info)) => (&trail.new, info),
        None => return Ok(false),
    };
    let version = Version::new(format!("{}{place}", table.core.settings.prefix), &info);
    see(&table.core, ino, info, at);
    open_names::lies_at(table, ino, &Arc::new(version), &trail.etag).await;
    Ok(true)
}

/// Waits until no rename that broke off has to do with a file, or this mount cannot end it.
async fn wait_ended(core: &Core, ino: u64) {
    let wait = core.renames.wait();
    let began = Instant::now();
    loop {
        let Some(path) = core.nodes().path(ino) else {
            return;
        };
        if !finishing::concerns(&core.renames, &path) {
            return;
        }
        // What the store said is said again when the file is published.
        let tried = finishing::finish_left(&core.renames, slice::from_ref(&path)).await;
        if tried.is_err() || !finishing::concerns(&core.renames, &path) || began.elapsed() >= wait {
            return;
        }
        tokio::time::sleep(wait / LOOKS).await;
    }
}

#[async_trait]
impl Follow for OpenTable {
    async fn follow_folder(&self, record: &Record, copies: &Copies, is_whole: bool) {
        let Some(folder) = nodes::find_path(&self.core.nodes(), &record.from) else {
            return;
        };
        let open = open_names::open_below(self, folder);
        let with_trail = |ino| Some((ino, self.trail_below(ino, record, copies)?));
        let trails: Vec<_> = open.into_iter().filter_map(with_trail).collect();
        self.move_folder(folder, &record.to);
        for (ino, (trail, is_named)) in trails {
            go_along(self, ino, trail, is_whole && is_named).await;
        }
    }

    async fn follow(&self, ino: u64) -> Result<(), Fault> {
        wait_ended(&self.core, ino).await;
        let Some(trail) = trail_of(self, ino) else {
            return Ok(());
        };
        let at = Instant::now();
        match find(&self.core, &trail, false).await? {
            Some(Found::Old(info)) => {
                nodes::move_to(&mut self.core.nodes(), ino, &trail.old);
                see(&self.core, ino, info, at);
            }
            Some(Found::New(info)) => {
                nodes::move_to(&mut self.core.nodes(), ino, &trail.new);
                see(&self.core, ino, info, at);
            }
            None => {}
        }
        self.unseen().remove(&ino);
        open_names::renamed(self, ino, &trail.etag).await;
        Ok(())
    }
}

impl OpenTable {
    /// Where the object of a file may be whose folder gets another name, and whether the record of
    /// that names it.
    fn trail_below(&self, ino: u64, record: &Record, copies: &Copies) -> Option<(Trail, bool)> {
        let (path, etag) = {
            let mut nodes = self.core.nodes();
            let file = nodes.file(ino).filter(|file| !file.is_gone)?;
            let etag = file.info.etag.clone();
            (nodes.path(ino)?, etag)
        };
        if let Some(trail) = Trail::of_record(record, copies, &path) {
            return Some((trail, true));
        }
        let new = format!("{}{}", record.to, path.strip_prefix(&*record.from)?);
        Some((Trail::new(path, new, etag), false))
    }

    fn move_folder(&self, folder: u64, to: &str) {
        let (old, new) = {
            let mut nodes = self.core.nodes();
            let old = nodes
                .get(folder)
                .map(|node| (node.parent, node.name.clone()));
            (old, nodes::move_to(&mut nodes, folder, to))
        };
        if let Some(((old_parent, old_name), (new_parent, new_name))) = old.zip(new) {
            let old = Name {
                parent: old_parent,
                name: &old_name,
            };
            let new = Name {
                parent: new_parent,
                name: new_name,
            };
            AttributeCalls::new(Arc::clone(&self.core)).moved(old, new, None);
        }
    }
}
