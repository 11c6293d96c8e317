// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What stat(2) shows of a node, without owner and mode, which are the mount's.

use std::time::{Duration, SystemTime};

/// Which kind of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Has names in it.
    Folder,
    /// Has bytes in it.
    File,
}

/// Of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// The inode's number.
    pub ino: u64,
    /// File or folder.
    pub kind: Kind,
    /// 0 for folders.
    pub size_bytes: u64,
    /// When the object was written; for folders when the mount began.
    pub modified: SystemTime,
}

/// What a name stands for, and how long that may be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Of the node.
    pub attributes: Attributes,
    /// From now on; zero where it must be asked for again.
    pub valid: Duration,
}
