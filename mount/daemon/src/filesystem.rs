// SPDX-License-Identifier: Apache-2.0 OR MIT
// structure: allow file-length because it is one trait of FUSE, call by call
//! Translates FUSE's calls into calls of `mount/files`. The threads that take the kernel's calls
//! hand each to the runtime and take the next one; the task that has the answer replies. What can
//! be answered without waiting for the store is answered at once, as most reads and writes.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLock, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use tokio::runtime::Handle;
use weft_files::locks::table::Span;
use weft_files::shared::{shared_copies, shared_names};
use weft_files::{
    Change, Given, Kind, Place, SharedFiles, SharedOpened, Special, Written, send_ready,
};

use crate::folder_listing::{read_entries, read_names};
use crate::locking::{self, Call, Locking};
use crate::node_calls::{
    Node, entered, give_xattr, link_target, make, moment, presence, set, xattr_name,
};
use crate::replies::{Owner, done, errno, named, open_mode, process_of, special, text};
use crate::staging_threads::StagingThreads;
use crate::write_call::WriteCall;
use crate::writers::Writers;

/// As large as the kernel's requests get without root changing fs.fuse.max_pages_limit.
const REQUEST_BYTES: u32 = 1 << 20;
/// Chosen: one request. More would have a page that is missing in a mapped file bring as much
/// around it.
pub const READ_AHEAD_BYTES: u32 = REQUEST_BYTES;
/// Chosen: requests of read-ahead that the kernel has under way.
const BACKGROUND_REQUESTS: u16 = 128;
/// What statfs(2) shows: a bucket has no end.
const ENDLESS_BLOCKS: u64 = 1 << 50;
const BLOCK_BYTES: u32 = 4096;
/// Whole pages, in 32 bits.
const LARGEST_COPY_BYTES: u64 = 1 << 31;

/// The file system that the kernel sees.
pub struct BucketFilesystem {
    shared: Arc<SharedFiles>,
    runtime: Handle,
    owner: Owner,
    writers: Arc<Writers>,
    staging: StagingThreads,
    locking: Locking,
}

impl BucketFilesystem {
    // structure: allow arguments because they are what a mount is made of
    /// Over `shared`, whose calls run on `runtime`; `writers` hears what is open for writing, and
    /// `staging` says which of the kernel's threads may stage.
    pub fn new(
        shared: Arc<SharedFiles>,
        runtime: Handle,
        owner: Owner,
        writers: Arc<Writers>,
        staging: StagingThreads,
        locking: Locking,
    ) -> Self {
        Self {
            shared,
            runtime,
            owner,
            writers,
            staging,
            locking,
        }
    }

    fn run<F, C>(&self, call: C)
    where
        C: FnOnce(Arc<SharedFiles>, Owner) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        self.runtime
            .spawn(call(Arc::clone(&self.shared), self.owner));
    }
}

impl Filesystem for BucketFilesystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            // Else the kernel asks for security.capability before each write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ];
        for flag in wanted {
            // What an older kernel lacks makes it slower, not wrong.
            let _ = config.add_capabilities(flag);
        }
        if self.locking.is_in_job {
            // Else the kernel's own locks hold, which do for one host.
            let locks = [InitFlags::FUSE_POSIX_LOCKS, InitFlags::FUSE_FLOCK_LOCKS];
            for flag in locks {
                if config.add_capabilities(flag).is_err() {
                    return Err(io::Error::other("this kernel leaves no locks to a mount"));
                }
            }
        }
        // A refusal names the nearest value, which is the kernel's limit.
        if let Err(most) = config.set_max_readahead(READ_AHEAD_BYTES) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND_REQUESTS);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = text(name);
        self.run(async move |shared, owner| {
            let found = match name {
                Ok(name) => shared_names::lookup(&shared, parent.0, &name).await,
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
        self.shared.files.forget(ino.0, count);
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        self.run(
            async move |shared, owner| match shared_names::attributes(&shared, ino.0).await {
                Ok(entry) => reply.attr(&entry.valid, &owner.attributes(&entry.attributes)),
                Err(fault) => reply.error(errno("getattr", &fault)),
            },
        );
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let mode = open_mode(flags.0, request.pid());
        let (writers, writes) = (Arc::clone(&self.writers), mode.writes);
        self.run(
            async move |shared, _| match shared.open(ino.0, mode).await {
                Ok(opened) => {
                    let handle = opened.opened.handle;
                    if writes {
                        writers.opened(handle, ino.0, None);
                    }
                    reply.opened(FileHandle(handle), open_flags(&opened));
                }
                Err(fault) => reply.error(errno("open", &fault)),
            },
        );
    }

    // structure: allow arguments because FUSE's trait has them
    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let making = self.owner.making(request, Kind::File, mode);
        let (name, mode) = (text(name), open_mode(flags, request.pid()));
        let writers = Arc::clone(&self.writers);
        self.run(async move |shared, owner| {
            let created = match &name {
                Ok(name) => {
                    let new = named(parent, name);
                    shared.create(new, mode, &making).await
                }
                Err(fault) => Err(fault.clone()),
            };
            match created {
                Ok((entry, opened)) => {
                    let mut flags = open_flags(&opened);
                    flags.remove(FopenFlags::FOPEN_KEEP_CACHE);
                    let handle = FileHandle(opened.opened.handle);
                    writers.opened(handle.0, entry.attributes.ino, name.ok());
                    let attributes = owner.attributes(&entry.attributes);
                    reply.created(&entry.valid, &attributes, Generation(0), handle, flags);
                }
                Err(fault) => reply.error(errno("create", &fault)),
            }
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let node = Node {
            ino: ino.0,
            handle: handle.map(|handle| handle.0),
        };
        let change = Change {
            given: Given {
                mode: mode.map(|mode| (mode & 0o7777) as u16),
                uid,
                gid,
            },
            accessed: atime.map(moment),
            modified: mtime.map(moment),
        };
        self.run(
            async move |shared, owner| match set(&shared, node, size, &change).await {
                Ok(entry) => reply.attr(&entry.valid, &owner.attributes(&entry.attributes)),
                Err(fault) => reply.error(errno("setattr", &fault)),
            },
        );
    }

    // structure: allow arguments because FUSE's trait has them
    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if let Err(fault) = locking::check(&self.shared.files, handle.0) {
            return reply.error(errno("write", &fault));
        }
        let call = WriteCall {
            ino: ino.0,
            handle: handle.0,
            drops_privileges: write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            length: data.len() as u32,
            reply,
        };
        let now = self.staging.begin();
        let written = now.and_then(|_now| self.shared.write_now(handle.0, offset, data));
        // Nearly every write ends here, without a second thread and a second copy.
        let data = match written {
            Some(Ok(Written::MustSend)) => None,
            Some(written) => {
                return call.end(&self.shared.files, &self.writers, written.map(drop));
            }
            None => Some(Bytes::copy_from_slice(data)),
        };
        let writers = Arc::clone(&self.writers);
        self.run(async move |shared, _| {
            let written = match data {
                Some(data) => shared.write(call.handle, offset, data).await,
                None => send_ready(&shared.files.open_files, call.handle).await,
            };
            call.end(&shared.files, &writers, written);
        });
    }

    fn flush(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let process = process_of(request.pid());
        let writers = Arc::clone(&self.writers);
        self.run(async move |shared, _| {
            // What was written under a lock that is lost is not for others.
            let mut flushed = locking::check(&shared.files, handle.0);
            let is_locked = flushed.is_ok();
            if is_locked {
                flushed = shared.flush(handle.0, process).await;
            }
            if let Some(calls) = &shared.files.lock_calls {
                let (open_files, owner) = (&shared.files.open_files, lock_owner.0);
                let given_up = calls.flushed(open_files, ino.0, owner, is_locked).await;
                let is_locked = locking::check(&shared.files, handle.0);
                flushed = flushed.and(given_up).and(is_locked);
            }
            writers.called(handle.0, &flushed);
            done(reply, "close", flushed);
        });
    }

    fn fsync(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        self.run(async move |shared, _| {
            let mut synced = locking::check(&shared.files, handle.0);
            if synced.is_ok() {
                let published = shared.publish(handle.0).await;
                let attributes = shared.files.attribute_calls.sync(ino.0).await;
                synced = published.and(attributes);
            }
            let is_locked = locking::check(&shared.files, handle.0);
            done(reply, "fsync", synced.and(is_locked));
        });
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        // Names are in the store when the calls that change them return.
        self.run(async move |shared, _| {
            done(
                reply,
                "fsync",
                shared.files.attribute_calls.sync(ino.0).await,
            );
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let (name, special) = (text(name), special(mode, device));
        let kind = special.as_ref().map_or(Kind::File, Special::kind);
        let making = self.owner.making(request, kind, mode);
        self.run(async move |shared, owner| {
            let made = match &name {
                Ok(name) => make(&shared, named(parent, name), special, &making).await,
                Err(fault) => Err(fault.clone()),
            };
            entered(reply, owner, "mknod", made);
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let names = text(name).and_then(|name| Ok((name, link_target(target)?)));
        let making = self.owner.making(request, Kind::Symlink, 0o777);
        self.run(async move |shared, owner| {
            let made = match &names {
                Ok((name, target)) => {
                    let (new, special) = (named(parent, name), Special::Symlink(target.clone()));
                    shared
                        .files
                        .attribute_calls
                        .make_special(new, special, &making)
                        .await
                }
                Err(fault) => Err(fault.clone()),
            };
            entered(reply, owner, "symlink", made);
        });
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        match self.shared.files.attribute_calls.link_target(ino.0) {
            Ok(target) => reply.data(target.as_bytes()),
            Err(fault) => reply.error(errno("readlink", &fault)),
        }
    }

    // structure: allow arguments because FUSE's trait has them
    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value, presence) = (xattr_name(name), value.to_vec(), presence(flags));
        self.run(async move |shared, _| {
            let set = match &name {
                Ok(name) => {
                    let calls = &shared.files.attribute_calls;
                    calls.set_xattr(ino.0, name, &value, presence).await
                }
                Err(fault) => Err(fault.clone()),
            };
            done(reply, "setxattr", set);
        });
    }

    fn getxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        match xattr_name(name) {
            Ok(name) => self.run(async move |shared, _| {
                let value = shared.files.attribute_calls.xattr(ino.0, &name).await;
                give_xattr(reply, "getxattr", size, value);
            }),
            Err(fault) => reply.error(errno("getxattr", &fault)),
        }
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.run(async move |shared, _| {
            let names = shared.files.attribute_calls.xattrs(ino.0).await;
            let ended = names.map(|names| {
                let ended = names.iter().flat_map(|name| [name.as_bytes(), b"\0"]);
                ended.collect::<Vec<_>>().concat()
            });
            give_xattr(reply, "listxattr", size, ended);
        });
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = xattr_name(name);
        self.run(async move |shared, _| {
            let removed = match &name {
                Ok(name) => shared.files.attribute_calls.remove_xattr(ino.0, name).await,
                Err(fault) => Err(fault.clone()),
            };
            done(reply, "removexattr", removed);
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let name = text(name);
        let making = self.owner.making(request, Kind::Folder, mode);
        self.run(async move |shared, owner| {
            let made = match &name {
                Ok(name) => shared.files.make_folder(named(parent, name), &making).await,
                Err(fault) => Err(fault.clone()),
            };
            match made {
                Ok(entry) => {
                    let attributes = owner.attributes(&entry.attributes);
                    reply.entry(&entry.valid, &attributes, Generation(0));
                }
                Err(fault) => reply.error(errno("mkdir", &fault)),
            }
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = text(name);
        self.run(async move |shared, _| {
            let removed = match &name {
                Ok(name) => shared_names::unlink(&shared, named(parent, name)).await,
                Err(fault) => Err(fault.clone()),
            };
            done(reply, "unlink", removed);
        });
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = text(name);
        self.run(async move |shared, _| {
            let removed = match &name {
                Ok(name) => shared_names::remove_folder(&shared, named(parent, name)).await,
                Err(fault) => Err(fault.clone()),
            };
            done(reply, "rmdir", removed);
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            reply.error(Errno::EINVAL);
            return;
        }
        let may_replace = flags.is_empty();
        let names = text(name).and_then(|old| Ok((old, text(new_name)?)));
        self.run(async move |shared, _| {
            let renamed = match &names {
                Ok((old, new)) => {
                    let (old, new) = (named(parent, old), named(new_parent, new));
                    shared_names::rename(&shared, old, new, may_replace).await
                }
                Err(fault) => Err(fault.clone()),
            };
            done(reply, "rename", renamed);
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn copy_file_range(
        &self,
        _request: &Request,
        _ino_from: INodeNo,
        from: FileHandle,
        from_offset: u64,
        _ino_to: INodeNo,
        to: FileHandle,
        to_offset: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The answer has 32 bits.
        let length = length.min(LARGEST_COPY_BYTES);
        self.run(async move |shared, _| {
            let place = |handle: FileHandle, offset| Place {
                handle: handle.0,
                offset,
            };
            let (from, to) = (place(from, from_offset), place(to, to_offset));
            match shared_copies::copy_range(&shared, from, to, length).await {
                Ok(copied) => reply.written(copied as u32),
                Err(fault) => reply.error(errno("copy_file_range", &fault)),
            }
        });
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
        if let Err(fault) = locking::check(&self.shared.files, handle.0) {
            return reply.error(errno("read", &fault));
        }
        // What is here is answered at once: each thread between is one more to wait for.
        let open_files = &self.shared.files.open_files;
        if let Some(bytes) = open_files.read_now(handle.0, offset, u64::from(size)) {
            reply.data(&bytes);
            return;
        }
        self.run(async move |shared, _| {
            match shared.read(handle.0, offset, u64::from(size)).await {
                Ok(bytes) => reply.data(&bytes),
                Err(fault) => reply.error(errno("read", &fault)),
            }
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let writers = Arc::clone(&self.writers);
        writers.closing(handle.0);
        self.run(async move |shared, _| {
            let closed = match locking::check(&shared.files, handle.0) {
                Ok(()) => shared.close(handle.0).await,
                Err(fault) => {
                    shared.close_broken(handle.0).await;
                    Err(fault)
                }
            };
            if let Some(calls) = &shared.files.lock_calls {
                calls
                    .released(&shared.files.open_files, ino.0, handle.0)
                    .await;
            }
            writers.closed(handle.0, &closed);
            done(reply, "close", closed);
        });
    }

    // structure: allow arguments because FUSE's trait has them
    fn getlk(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        process: u32,
        reply: ReplyLock,
    ) {
        let call = Call {
            ino: ino.0,
            handle: handle.0,
            owner: owner.0,
            span: Span {
                first: start,
                last: end,
            },
            kind,
            process,
            thread: request.pid(),
        };
        self.locking.get(&self.shared.files, call, reply);
    }

    // structure: allow arguments because FUSE's trait has them
    fn setlk(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        process: u32,
        sleeps: bool,
        reply: ReplyEmpty,
    ) {
        let call = Call {
            ino: ino.0,
            handle: handle.0,
            owner: owner.0,
            span: Span {
                first: start,
                last: end,
            },
            kind,
            process,
            thread: request.pid(),
        };
        self.locking.set(&self.shared.files, call, sleeps, reply);
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.shared.files.folders.open(ino.0) {
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
        reply: ReplyDirectory,
    ) {
        self.run(async move |shared, _| read_names(&shared.files, handle.0, offset, reply).await);
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        self.run(async move |shared, owner| {
            read_entries(&shared.files, owner, handle.0, offset, reply).await;
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
        self.shared.files.folders.close(handle.0);
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

/// How the kernel treats an open file.
fn open_flags(opened: &SharedOpened) -> FopenFlags {
    match (opened.is_direct, opened.opened.keeps_pages) {
        (true, _) => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
        (_, true) => FopenFlags::FOPEN_KEEP_CACHE,
        _ => FopenFlags::empty(),
    }
}
