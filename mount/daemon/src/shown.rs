// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel is shown: attributes, numbers of errors, the names `.` and `..`. For
//! [`crate::face`].

use std::ffi::OsStr;

use fuser::{Errno, FileAttr, FileType, INodeNo, ReplyEmpty};
use nix::fcntl::OFlag;
use weft_files::{Attributes, BucketFiles, Fault, Kind, Mode, Name, Reason};

use crate::log;
use crate::options::AccessOptions;

/// What programs are told to read and write at once.
const BEST_BYTES: u32 = 1 << 20;

/// Who owns all files, and their modes.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    uid: u32,
    gid: u32,
    dir_mode: u16,
    file_mode: u16,
}

impl Owner {
    /// As the options say, else who runs this.
    pub fn new(options: &AccessOptions) -> Self {
        let uid = options
            .uid
            .unwrap_or_else(|| nix::unistd::geteuid().as_raw());
        let gid = options
            .gid
            .unwrap_or_else(|| nix::unistd::getegid().as_raw());
        Self {
            uid,
            gid,
            dir_mode: options.dir_mode,
            file_mode: options.file_mode,
        }
    }

    /// Of a file or folder.
    pub fn attributes(&self, attributes: &Attributes) -> FileAttr {
        let (kind, perm, nlink) = match attributes.kind {
            Kind::Folder => (FileType::Directory, self.dir_mode, 2),
            Kind::File => (FileType::RegularFile, self.file_mode, 1),
        };
        FileAttr {
            ino: INodeNo(attributes.ino),
            size: attributes.size_bytes,
            blocks: attributes.size_bytes.div_ceil(512),
            atime: attributes.modified,
            mtime: attributes.modified,
            ctime: attributes.modified,
            crtime: attributes.modified,
            kind,
            perm,
            nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: BEST_BYTES,
            flags: 0,
        }
    }
}

/// The number of a reason; what there is to say goes to the log.
pub fn errno(call: &str, fault: &Fault) -> Errno {
    if let Some(cause) = &fault.cause {
        log::tell(&format!("{call}: {cause}"));
    }
    match fault.reason {
        Reason::NotFound => Errno::ENOENT,
        Reason::Denied => Errno::EACCES,
        Reason::ReadOnly => Errno::EROFS,
        Reason::Exists => Errno::EEXIST,
        Reason::NotEmpty => Errno::ENOTEMPTY,
        Reason::NotFolder => Errno::ENOTDIR,
        Reason::IsFolder => Errno::EISDIR,
        Reason::Invalid => Errno::EINVAL,
        Reason::NameTooLong => Errno::ENAMETOOLONG,
        Reason::Busy => Errno::EBUSY,
        Reason::Stale => Errno::ESTALE,
        Reason::NotOpen => Errno::EBADF,
        Reason::TooLarge => Errno::EFBIG,
        Reason::NoSpace => Errno::ENOSPC,
        Reason::Unsupported => Errno::ENOTSUP,
        Reason::Broken => Errno::EIO,
    }
}

/// Keys are UTF-8; no object has another name.
pub fn text(name: &OsStr) -> Result<String, Fault> {
    name.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Reason::NotFound.into())
}

/// The kernel's word for a kind.
pub fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::Folder => FileType::Directory,
        Kind::File => FileType::RegularFile,
    }
}

/// `.` and `..`, as far as `offset` has not passed them, with the offsets behind them.
pub fn dots(files: &BucketFiles, handle: u64, offset: u64) -> Vec<(u64, u64, &'static str)> {
    let (own, parent) = files.folders.numbers(handle).unwrap_or((1, 1));
    let all = [(1, own, "."), (2, parent, "..")];
    all.into_iter().skip(offset.min(2) as usize).collect()
}

/// A name of a call.
pub fn named(parent: INodeNo, name: &str) -> Name<'_> {
    Name {
        parent: parent.0,
        name,
    }
}

/// Replies to a call that answers nothing.
pub fn done(reply: ReplyEmpty, call: &str, outcome: Result<(), Fault>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(fault) => reply.error(errno(call, &fault)),
    }
}

/// What open(2) was asked for.
pub fn mode(flags: i32, thread: u32) -> Mode {
    let flags = OFlag::from_bits_truncate(flags);
    Mode {
        writes: flags.intersects(OFlag::O_WRONLY | OFlag::O_RDWR),
        appends: flags.contains(OFlag::O_APPEND),
        truncates: flags.contains(OFlag::O_TRUNC),
        process: process_of(thread),
    }
}

/// The process of a thread, which is what FUSE names; from proc(5).
pub fn process_of(thread: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(thread)
}
