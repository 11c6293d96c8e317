// SPDX-License-Identifier: Apache-2.0 OR MIT
//! FUSE's calls as calls of `mount/files`. The kernel's threads hand each call to the runtime and
//! take the next one; whoever has the answer replies.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, Request,
};
use tokio::runtime::Handle;
use weft_files::{Attributes, BucketFiles, Fault, Kind, Reason};

use crate::log;
use crate::options::AccessOptions;

/// As large as the kernel's requests get without root changing fs.fuse.max_pages_limit.
const REQUEST_BYTES: u32 = 1 << 20;
/// Chosen: requests of read-ahead that the kernel has under way.
const BACKGROUND_REQUESTS: u16 = 128;
/// What statfs(2) shows: a bucket has no end.
const ENDLESS_BLOCKS: u64 = 1 << 50;
const BLOCK_BYTES: u32 = 4096;

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

    fn attributes(&self, attributes: &Attributes) -> FileAttr {
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
            blksize: REQUEST_BYTES,
            flags: 0,
        }
    }
}

/// The file system that the kernel sees.
pub struct Face {
    files: Arc<BucketFiles>,
    runtime: Handle,
    owner: Owner,
}

impl Face {
    /// Over `files`, whose calls run on `runtime`.
    pub fn new(files: Arc<BucketFiles>, runtime: Handle, owner: Owner) -> Self {
        Self {
            files,
            runtime,
            owner,
        }
    }

    fn run<F, C>(&self, call: C)
    where
        C: FnOnce(Arc<BucketFiles>, Owner) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime
            .spawn(call(Arc::clone(&self.files), self.owner));
    }
}

/// The number of a reason; what there is to say goes to the log.
fn errno(call: &str, fault: &Fault) -> Errno {
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
        Reason::Unsupported => Errno::ENOTSUP,
        Reason::Broken => Errno::EIO,
    }
}

/// Keys are UTF-8; no object has another name.
fn text(name: &OsStr) -> Result<String, Fault> {
    name.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Reason::NotFound.into())
}

impl Filesystem for Face {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
        ];
        for flag in wanted {
            // What an older kernel lacks makes it slower, not wrong.
            let _ = config.add_capabilities(flag);
        }
        // A refusal names the nearest value, which is the kernel's limit.
        if let Err(most) = config.set_max_readahead(REQUEST_BYTES) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND_REQUESTS);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = text(name);
        self.run(async move |files, owner| {
            let found = match name {
                Ok(name) => files.lookup(parent.0, &name).await,
                Err(fault) => Err(fault),
            };
            match found {
                Ok(entry) => {
                    let attributes = owner.attributes(&entry.attributes);
                    reply.entry(&entry.valid, &attributes, Generation(0));
                }
                Err(fault) => reply.error(errno("lookup", &fault)),
            }
        });
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        self.files.forget(ino.0, count);
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.run(
            async move |files, owner| match files.attributes(ino.0).await {
                Ok(entry) => reply.attr(&entry.valid, &owner.attributes(&entry.attributes)),
                Err(fault) => reply.error(errno("getattr", &fault)),
            },
        );
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            reply.error(Errno::EROFS);
            return;
        }
        self.run(
            async move |files, _| match files.open_files.open(ino.0).await {
                Ok(opened) => {
                    let flags = if opened.keeps_pages {
                        FopenFlags::FOPEN_KEEP_CACHE
                    } else {
                        FopenFlags::empty()
                    };
                    reply.opened(FileHandle(opened.handle), flags);
                }
                Err(fault) => reply.error(errno("open", &fault)),
            },
        );
    }

    // structure: allow arguments because FUSE's trait has them
    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.run(async move |files, _| {
            match files
                .open_files
                .read(handle.0, offset, u64::from(size))
                .await
            {
                Ok(bytes) => reply.data(&bytes),
                Err(fault) => reply.error(errno("read", &fault)),
            }
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.files.open_files.close(handle.0);
        reply.ok();
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.files.folders.open(ino.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(fault) => reply.error(errno("opendir", &fault)),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        self.run(async move |files, _| {
            let dots = dots(&files, handle.0, offset);
            for (next, ino, name) in dots {
                if reply.add(INodeNo(ino), next, FileType::Directory, name) {
                    reply.ok();
                    return;
                }
            }
            let index = offset.saturating_sub(2) as usize;
            let read = files
                .folders
                .read(handle.0, index, false, |index, entry| {
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
        });
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        self.run(async move |files, owner| {
            for (next, ino, name) in dots(&files, handle.0, offset) {
                // The kernel takes neither into account (fuse_direntplus_link in dir.c of Linux).
                let attributes = owner.attributes(&Attributes {
                    ino,
                    kind: Kind::Folder,
                    size_bytes: 0,
                    modified: std::time::UNIX_EPOCH,
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
                .read(handle.0, index, true, |index, entry| {
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
        });
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.files.folders.close(handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = ENDLESS_BLOCKS;
        let files = u64::MAX >> 1;
        reply.statfs(
            blocks,
            blocks,
            blocks,
            files,
            files,
            BLOCK_BYTES,
            255,
            BLOCK_BYTES,
        );
    }
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::Folder => FileType::Directory,
        Kind::File => FileType::RegularFile,
    }
}

/// `.` and `..`, as far as `offset` has not passed them, with the offsets behind them.
fn dots(files: &BucketFiles, handle: u64, offset: u64) -> Vec<(u64, u64, &'static str)> {
    let (own, parent) = files.folders.numbers(handle).unwrap_or((1, 1));
    let all = [(1, own, "."), (2, parent, "..")];
    all.into_iter().skip(offset.min(2) as usize).collect()
}
