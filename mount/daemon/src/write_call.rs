// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A write that the kernel waits for, on whichever thread it ends. For [`crate::filesystem`].

use fuser::ReplyWrite;
use weft_files::{BucketFiles, Fault};

use crate::replies::errno;
use crate::writers::Writers;

/// What is needed once the bytes are taken.
pub struct WriteCall {
    /// The file's number.
    pub ino: u64,
    /// The kernel's, of the open file.
    pub handle: u64,
    /// The kernel leaves it to the file system to take set-user-ID from what is written.
    pub drops_privileges: bool,
    /// In bytes.
    pub length: u32,
    /// The kernel waits for it.
    pub reply: ReplyWrite,
}

impl WriteCall {
    /// Replies.
    pub fn end(self, files: &BucketFiles, writers: &Writers, written: Result<(), Fault>) {
        writers.called(self.handle, &written);
        if self.drops_privileges {
            files.attribute_calls.drop_privileges(self.ino);
        }
        match written {
            Ok(()) => self.reply.written(self.length),
            Err(fault) => self.reply.error(errno("write", &fault)),
        }
    }
}
