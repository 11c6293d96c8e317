// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on locks, translated between FUSE and `mount/files`. For [`crate::filesystem`].
//!
//! `fuser` 0.18 drops what tells flock(2) from fcntl(2), so both exclude each other, as on NFS. It
//! also refuses FUSE's interrupts. So whoever waits is looked at: a signal that is pending for it
//! ends the wait with EINTR, and the kernel then treats the call as any that a signal interrupts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{Errno, INodeNo, Notifier, ReplyEmpty, ReplyLock};
use tokio::runtime::Handle;
use weft_files::locks::table::{Lock, Span};
use weft_files::{BucketFiles, Fault, LockCall, Locked};

use crate::replies::{errno, process_of};

/// F_RDLCK, F_WRLCK and F_UNLCK of fcntl.h.
const SHARED: i32 = 0;
const EXCLUSIVE: i32 = 1;
const NONE: i32 = 2;
/// Chosen: between two looks at who waits. A look takes some microseconds.
const LOOK: Duration = Duration::from_millis(50);

/// How a mount's locks are answered.
#[derive(Clone)]
pub struct Locking {
    /// The kernel's own locks do not suffice: others of the job have the bucket, too.
    pub is_in_job: bool,
    /// Set once the mount is there.
    pub notifier: Arc<OnceLock<Notifier>>,
    runtime: Handle,
}

/// A call of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The node of the file.
    pub ino: u64,
    /// The open file.
    pub handle: u64,
    /// The kernel's number of who asks.
    pub owner: u64,
    /// The bytes.
    pub span: Span,
    /// F_RDLCK, F_WRLCK or F_UNLCK.
    pub kind: i32,
    /// Who asks, for others to see.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
}

impl Call {
    fn lock(&self) -> Option<LockCall> {
        let is_exclusive = match self.kind {
            SHARED => Some(false),
            EXCLUSIVE => Some(true),
            NONE => None,
            _ => return None,
        };
        Some(LockCall {
            ino: self.ino,
            handle: self.handle,
            owner: self.owner,
            span: self.span,
            is_exclusive,
            process: self.process,
        })
    }
}

impl Locking {
    /// Of a mount that is or should be in a job; calls run on `runtime`.
    pub fn new(is_in_job: bool, runtime: Handle) -> Self {
        Self {
            is_in_job,
            notifier: Arc::default(),
            runtime,
        }
    }

    /// F_SETLK, F_SETLKW and flock(2); `sleeps`: it waits.
    pub fn set(&self, files: &Arc<BucketFiles>, call: Call, sleeps: bool, reply: ReplyEmpty) {
        let Some(lock) = call.lock() else {
            return reply.error(Errno::EINVAL);
        };
        let (this, files) = (self.clone(), Arc::clone(files));
        self.runtime.spawn(async move {
            let Some(calls) = &files.lock_calls else {
                // It could not join its job: a lock here would exclude nobody there.
                return reply.error(Errno::ENOLCK);
            };
            let done = if sleeps {
                let interrupted = signalled(call.thread);
                calls.wait(&files.open_files, &lock, interrupted).await
            } else {
                calls.set(&files.open_files, &lock).await
            };
            match done {
                Ok(Locked { drops_pages, turn }) => {
                    if drops_pages {
                        this.drop_pages(lock.ino).await;
                    }
                    drop(turn);
                    reply.ok();
                }
                Err(fault) => reply.error(errno("lock", &fault)),
            }
        });
    }

    /// F_GETLK.
    pub fn get(&self, files: &Arc<BucketFiles>, call: Call, reply: ReplyLock) {
        let Some(lock) = call.lock() else {
            return reply.error(Errno::EINVAL);
        };
        let files = Arc::clone(files);
        self.runtime.spawn(async move {
            let Some(calls) = &files.lock_calls else {
                return reply.error(Errno::ENOLCK);
            };
            match calls.test(&files.open_files, &lock).await {
                Ok(Some(other)) => {
                    let kind = if other.is_exclusive {
                        EXCLUSIVE
                    } else {
                        SHARED
                    };
                    let is_here = other.holder.node == calls.locks().holder(0).node;
                    // A process of another host has no number here.
                    let process = if is_here { other.process } else { 0 };
                    let Lock { span, .. } = other;
                    reply.locked(span.first, span.last, kind, process);
                }
                Ok(None) => reply.locked(lock.span.first, lock.span.last, NONE, 0),
                Err(fault) => reply.error(errno("lock", &fault)),
            }
        });
    }

    /// The kernel forgets what it has of a file.
    async fn drop_pages(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get().cloned() {
            // Waits for reads that are under way.
            let drop = move || notifier.inval_inode(INodeNo(ino), 0, 0);
            let _ = self.runtime.spawn_blocking(drop).await;
        }
    }
}

/// Whether an open file may be used on: the locks that were taken by it are not lost.
///
/// # Errors
/// `Broken` where they are.
pub fn check(files: &BucketFiles, handle: u64) -> Result<(), Fault> {
    match &files.lock_calls {
        Some(calls) => calls.locks().check(handle),
        None => Ok(()),
    }
}

/// Ends when a signal waits for a thread that it does not block.
async fn signalled(thread: u32) {
    loop {
        tokio::time::sleep(LOOK).await;
        if has_signal(thread) {
            return;
        }
    }
}

fn has_signal(thread: u32) -> bool {
    let Ok(status) = std::fs::read(format!("/proc/{thread}/status")) else {
        // Gone, or of another process namespace: nobody can be asked.
        return false;
    };
    let status = String::from_utf8_lossy(&status);
    let set = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
            .unwrap_or_default()
    };
    let blocked = set(&status, "SigBlk:");
    if set(&status, "SigPnd:") & !blocked != 0 {
        return true;
    }
    // One for the process goes to its first thread, unless that blocks it.
    let first = process_of(thread);
    let mut shared = set(&status, "ShdPnd:") & !blocked;
    if first != thread {
        let status = std::fs::read(format!("/proc/{first}/status")).unwrap_or_default();
        shared &= set(&String::from_utf8_lossy(&status), "SigBlk:");
    }
    shared != 0
}
