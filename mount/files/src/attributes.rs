// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attributes of a node, as stat(2) shows them. Attributes that nobody set are absent; then the
//! mount's owner and mode are shown.

use std::time::{Duration, SystemTime};

/// Which kind of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Has names in it.
    Folder,
    /// Has bytes in it.
    File,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A device of characters.
    Character,
    /// A device of blocks.
    Block,
}

/// Of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// The inode's number.
    pub ino: u64,
    /// File, folder or something else.
    pub kind: Kind,
    /// 0 for folders.
    pub size_bytes: u64,
    /// When the object was written; for folders when the mount began, or changed a name in it.
    pub modified: SystemTime,
    /// When it was read, where a program said so.
    pub accessed: SystemTime,
    /// When content or attributes were changed.
    pub changed: SystemTime,
    /// Permissions and the three bits above them.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// How many names it has: none once it was unlinked.
    pub has_name: bool,
    /// The number of a device; else 0.
    pub device: u32,
}

/// Mode and owners; absent is what the mount's options have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Given {
    /// Permissions and the three bits above them.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
}

/// Whose program makes a node, in a job that shares files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// One of this mount.
    Here,
    /// The same, and another mount makes the file for it.
    HereByOther,
    /// One of another mount, which keeps the attributes.
    Other,
}

/// How a program makes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Making {
    /// What.
    pub kind: Kind,
    /// What differs from the mount's options.
    pub given: Given,
    /// The mode that the mount's options have for this kind.
    pub usual_mode: u16,
    /// Whose program makes it.
    pub maker: Maker,
}

impl Making {
    /// A file that another mount of the job makes by this one.
    pub const FOR_OTHER: Self = Self {
        maker: Maker::Other,
        ..Self::FILE
    };
    /// As the options have it where none is given.
    pub const FILE: Self = Self::usual(Kind::File, 0o644);
    /// The same.
    pub const FOLDER: Self = Self::usual(Kind::Folder, 0o755);

    const fn usual(kind: Kind, usual_mode: u16) -> Self {
        let given = Given {
            mode: None,
            uid: None,
            gid: None,
        };
        Self {
            kind,
            given,
            usual_mode,
            maker: Maker::Here,
        }
    }
}

/// What chmod(2), chown(2) or utimensat(2) changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Mode and owners.
    pub given: Given,
    /// The time of reading.
    pub accessed: Option<SystemTime>,
    /// The time of writing.
    pub modified: Option<SystemTime>,
}

/// What a name stands for, and how long that may be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Of the node.
    pub attributes: Attributes,
    /// From now on; zero where it must be asked for again.
    pub valid: Duration,
}
