// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open folders in the form in which the kernel reads them, with attributes and without. For
//! [`crate::filesystem`].

use std::time::{Duration, UNIX_EPOCH};

use fuser::{FileType, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use weft_files::folders::FIRST_ENTRIES;
use weft_files::{Attributes, BucketFiles, Kind};

use crate::replies::{Owner, dots, errno, file_type};

/// Names from `offset` on, as many as fit.
pub async fn read_names(files: &BucketFiles, handle: u64, offset: u64, mut reply: ReplyDirectory) {
    let dots = dots(files, handle, offset);
    for (next, ino, name) in dots {
        if reply.add(INodeNo(ino), next, FileType::Directory, name) {
            reply.ok();
            return;
        }
    }
    let index = offset.saturating_sub(2) as usize;
    let read = files
        .folders
        .read(handle, index, false, |index, entry| {
            let next = index as u64 + 3;
            !reply.add(
                INodeNo(entry.ino),
                next,
                file_type(entry.kind),
                &*entry.name,
            )
        })
        .await;
    match read {
        Ok(()) => reply.ok(),
        Err(fault) => reply.error(errno("readdir", &fault)),
    }
}

/// The same with attributes.
pub async fn read_entries(
    files: &BucketFiles,
    owner: Owner,
    handle: u64,
    offset: u64,
    mut reply: ReplyDirectoryPlus,
) {
    for (next, ino, name) in dots(files, handle, offset) {
        // The kernel takes neither into account (fuse_direntplus_link in dir.c of Linux).
        let attributes = owner.attributes(&Attributes {
            ino,
            kind: Kind::Folder,
            size_bytes: 0,
            modified: UNIX_EPOCH,
            accessed: UNIX_EPOCH,
            changed: UNIX_EPOCH,
            mode: None,
            uid: None,
            gid: None,
            has_name: true,
            device: 0,
        });
        let ttl = Duration::ZERO;
        if reply.add(INodeNo(ino), next, name, &ttl, &attributes, Generation(0)) {
            reply.ok();
            return;
        }
    }
    let index = offset.saturating_sub(2) as usize;
    let read = files
        .folders
        .read(handle, index, true, |index, entry| {
            if offset == 0 && index == FIRST_ENTRIES {
                return false;
            }
            let next = index as u64 + 3;
            let known = entry.entry.as_ref();
            let known = known.expect("attributes were asked for");
            let attributes = owner.attributes(&known.attributes);
            let ino = attributes.ino;
            let (valid, name) = (&known.valid, &*entry.name);
            !reply.add(ino, next, name, valid, &attributes, Generation(0))
        })
        .await;
    match read {
        Ok(()) => reply.ok(),
        Err(fault) => reply.error(errno("readdir", &fault)),
    }
}
