// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls that make nodes and change their attributes, translated between FUSE and
//! `mount/files`. For [`crate::filesystem`].

use std::ffi::OsStr;
use std::path::Path;
use std::time::SystemTime;

use fuser::{Errno, Generation, ReplyEntry, ReplyXattr, TimeOrNow};
use weft_files::shared::{shared_names, shared_times};
use weft_files::{
    Change, Entry, Fault, Making, Mode, Name, Presence, Reason, SharedFiles, Special, TARGET_BYTES,
};

use crate::replies::{Owner, errno, text};

/// XATTR_NAME_MAX of Linux.
const XATTR_NAME_BYTES: usize = 255;

/// Replies to a call that made a node.
pub fn entered(reply: ReplyEntry, owner: Owner, call: &str, made: Result<Entry, Fault>) {
    match made {
        Ok(entry) => {
            let attributes = owner.attributes(&entry.attributes);
            reply.entry(&entry.valid, &attributes, Generation(0));
        }
        Err(fault) => reply.error(errno(call, &fault)),
    }
}

/// Makes what mknod(2) asks for: something special, or an empty file.
///
/// # Errors
/// `Exists`; those of creating a file.
pub async fn make(
    shared: &SharedFiles,
    new: Name<'_>,
    special: Option<Special>,
    making: &Making,
) -> Result<Entry, Fault> {
    let files = &shared.files;
    if let Some(special) = special {
        return files
            .attribute_calls
            .make_special(new, special, making)
            .await;
    }
    match shared_names::lookup(shared, new.parent, new.name).await {
        Ok(entry) => {
            files.forget(entry.attributes.ino, 1);
            return Err(Reason::Exists.into());
        }
        Err(fault) if fault.reason == Reason::NotFound => {}
        Err(fault) => return Err(fault),
    }
    let (entry, opened) = shared.create(new, Mode::WRITES, making).await?;
    shared.close(opened.opened.handle).await?;
    Ok(entry)
}

/// What setattr changes.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// Its number.
    pub ino: u64,
    /// By which a program has it open, if that was said.
    pub handle: Option<u64>,
}

/// Does what setattr asks for, and says what the node is then.
///
/// # Errors
/// Those of writing, and of attributes.
pub async fn set(
    shared: &SharedFiles,
    node: Node,
    size: Option<u64>,
    change: &Change,
) -> Result<Entry, Fault> {
    let files = &shared.files;
    if let Some(size) = size {
        shared.resize(node.ino, node.handle, size).await?;
        // The kernel leaves that to who says FUSE_HANDLE_KILLPRIV_V2.
        files.attribute_calls.drop_privileges(node.ino);
    }
    if *change != Change::default() {
        shared_times::change(shared, node.ino, change).await?;
    }
    shared_names::attributes(shared, node.ino).await
}

/// The moment that is meant.
pub fn moment(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

/// Where a symbolic link shall point.
///
/// # Errors
/// `NameTooLong`; `Invalid` for what is no UTF-8.
pub fn link_target(target: &Path) -> Result<String, Fault> {
    let target = target.to_str().ok_or(Reason::Invalid)?;
    if target.len() > TARGET_BYTES {
        return Err(Reason::NameTooLong.into());
    }
    Ok(target.to_owned())
}

/// The name of an extended attribute that is kept.
///
/// # Errors
/// `Unsupported` for other name spaces than `user.` and `trusted.`: access lists and capabilities
/// would have to be heeded, too.
pub fn xattr_name(name: &OsStr) -> Result<String, Fault> {
    let name = text(name)?;
    if name.len() > XATTR_NAME_BYTES {
        return Err(Reason::NameTooLong.into());
    }
    match name.split_once('.') {
        Some(("user" | "trusted", rest)) if !rest.is_empty() => Ok(name),
        _ => Err(Reason::Unsupported.into()),
    }
}

/// Of setxattr(2).
pub fn presence(flags: i32) -> Presence {
    match flags {
        // XATTR_CREATE, XATTR_REPLACE of xattr.h.
        1 => Presence::New,
        2 => Presence::Old,
        _ => Presence::Any,
    }
}

/// Replies with a value, or with its length where nothing fits.
pub fn give_xattr(reply: ReplyXattr, call: &str, room: u32, value: Result<Vec<u8>, Fault>) {
    match value {
        Ok(value) if room == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() <= room as usize => reply.data(&value),
        Ok(_) => reply.error(Errno::ERANGE),
        Err(fault) => reply.error(errno(call, &fault)),
    }
}
