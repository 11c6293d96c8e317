// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The replies that the kernel gets: attributes, numbers of errors, the names `.` and `..`. For
//! [`crate::filesystem`].

use std::ffi::OsStr;

use fuser::{Errno, FileAttr, FileType, INodeNo, ReplyEmpty, Request};
use nix::fcntl::OFlag;
use nix::sys::stat::SFlag;
use weft_files::{
    Attributes, BucketFiles, Fault, Given, Kind, Maker, Making, Mode, Name, Reason, Special,
};

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

    /// Of a node.
    pub fn attributes(&self, attributes: &Attributes) -> FileAttr {
        let usual_mode = self.usual_mode(attributes.kind);
        let links = match attributes.kind {
            Kind::Folder => 2,
            _ => u32::from(attributes.has_name),
        };
        FileAttr {
            ino: INodeNo(attributes.ino),
            size: attributes.size_bytes,
            blocks: attributes.size_bytes.div_ceil(512),
            atime: attributes.accessed,
            mtime: attributes.modified,
            ctime: attributes.changed,
            crtime: attributes.modified,
            kind: file_type(attributes.kind),
            perm: attributes.mode.unwrap_or(usual_mode),
            nlink: links,
            uid: attributes.uid.unwrap_or(self.uid),
            gid: attributes.gid.unwrap_or(self.gid),
            rdev: attributes.device,
            blksize: BEST_BYTES,
            flags: 0,
        }
    }

    fn usual_mode(&self, kind: Kind) -> u16 {
        match kind {
            Kind::Folder => self.dir_mode,
            Kind::Symlink => 0o777,
            _ => self.file_mode,
        }
    }

    /// How a program makes a node: what differs from the options is kept.
    pub fn making(&self, request: &Request, kind: Kind, mode: u32) -> Making {
        let (usual_mode, mode) = (self.usual_mode(kind), (mode & 0o7777) as u16);
        let (uid, gid) = (request.uid(), request.gid());
        let mode = if kind == Kind::Symlink {
            usual_mode
        } else {
            mode
        };
        Making {
            kind,
            given: Given {
                mode: (mode != usual_mode).then_some(mode),
                uid: (uid != self.uid).then_some(uid),
                gid: (gid != self.gid).then_some(gid),
            },
            usual_mode,
            maker: Maker::Here,
        }
    }
}

/// What mknod(2) makes beside files.
pub fn special(mode: u32, device: u32) -> Option<Special> {
    match SFlag::from_bits_truncate(mode) & SFlag::S_IFMT {
        SFlag::S_IFIFO => Some(Special::Fifo),
        SFlag::S_IFSOCK => Some(Special::Socket),
        SFlag::S_IFCHR => Some(Special::Character(device)),
        SFlag::S_IFBLK => Some(Special::Block(device)),
        _ => None,
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
        Reason::NoAttribute => Errno::ENODATA,
        Reason::TooMuch => Errno::E2BIG,
        Reason::TooManyOpen => Errno::ENFILE,
        Reason::Taken => Errno::EAGAIN,
        Reason::Deadlock => Errno::EDEADLK,
        Reason::Interrupted => Errno::EINTR,
        Reason::NoLocks => Errno::ENOLCK,
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
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::Character => FileType::CharDevice,
        Kind::Block => FileType::BlockDevice,
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
pub fn open_mode(flags: i32, thread: u32) -> Mode {
    let flags = OFlag::from_bits_truncate(flags);
    Mode {
        writes: flags.intersects(OFlag::O_WRONLY | OFlag::O_RDWR),
        appends: flags.contains(OFlag::O_APPEND),
        truncates: flags.contains(OFlag::O_TRUNC),
        is_new: flags.contains(OFlag::O_EXCL),
        is_pinned: false,
        process: process_of(thread),
    }
}

/// The process of a thread, which is what FUSE names; from proc(5).
pub fn process_of(thread: u32) -> u32 {
    // The name in it need not be UTF-8.
    let status = std::fs::read(format!("/proc/{thread}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(thread)
}
