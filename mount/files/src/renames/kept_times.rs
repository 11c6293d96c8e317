// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times that programs set for the content of files hold for an entity tag (docs/mount-names.md). A
//! copy can have another one than its source: that of an object that was uploaded in parts. So once
//! a folder has its new name, its attributes get the tags of the copies. For [`crate::renames`].

use std::collections::BTreeMap;

use weft_store::{Condition, StoreError};

use crate::attribute_object;
use crate::attribute_requests;
use crate::names::ATTRIBUTES;
use crate::object_copies::is_otherwise;
use crate::renames::copies::OtherTag;
use crate::renames::moving::Move;
use crate::staging::ways::Ways;

/// Chosen: how often another mount may change the attributes first.
const ROUNDS: usize = 8;

/// Gives times in the moved folder, and below, the tags of the copies. What the store refuses is
/// told: the bytes are there, and only times are lost.
pub async fn keep(moving: &Move<'_>, tags: &[OtherTag]) {
    let objects = &moving.record.objects;
    let with_attributes = objects
        .iter()
        .filter_map(|o| o.key.strip_suffix(ATTRIBUTES));
    let mut folders: BTreeMap<&str, Vec<&OtherTag>> =
        with_attributes.map(|folder| (folder, Vec::new())).collect();
    for tag in tags {
        let (folder, _) = tag.place();
        if let Some(here) = folders.get_mut(folder) {
            here.push(tag);
        }
    }
    for (folder, tags) in folders.into_iter().filter(|(_, tags)| !tags.is_empty()) {
        let key = moving.to(&format!("{folder}{ATTRIBUTES}"));
        if let Err(error) = rebind(moving.ways, &key, &tags).await {
            (moving.tell)(&format!(
                "times that were set for files in the renamed folder of `{key}` are lost: {error}"
            ));
        }
    }
}

/// Writes the new tags into one folder's attributes, if they name one of the old ones.
async fn rebind(ways: &Ways, key: &str, tags: &[&OtherTag]) -> Result<(), StoreError> {
    for _ in 0..ROUNDS {
        let Some(info) = ways.store.find(key).await? else {
            return Ok(());
        };
        let read = match attribute_requests::get(&*ways.store, key, &info).await {
            Err(error) if is_otherwise(&error) => continue,
            got => got?,
        };
        // What this mount cannot read it does not touch.
        let Ok(mut all) = read else {
            return Ok(());
        };
        let mut is_changed = false;
        for tag in tags {
            let attribute = all.get_mut(tag.place().1);
            let modified = attribute.and_then(|attribute| attribute.modified.as_mut());
            if let Some(modified) = modified.filter(|modified| modified.etag == tag.before) {
                modified.etag.clone_from(&tag.after);
                is_changed = true;
            }
        }
        let Some(body) = attribute_object::write(all).ok().filter(|_| is_changed) else {
            return Ok(());
        };
        let when = Condition::IfMatch(info.etag);
        match attribute_requests::put(&*ways.store, key, body, &when).await {
            Err(error) if is_otherwise(&error) => {}
            put => return put.map(drop),
        }
    }
    Ok(())
}
