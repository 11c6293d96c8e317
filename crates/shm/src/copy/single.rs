// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single copy by system call (process_vm_readv(2), process_vm_writev(2)): what its answers mean.

use std::io;
use std::ops::Range;

/// Bytes fetched by single copy in one call of progress. Chosen: long enough that the system call
/// does not count, short enough that other messages are not kept waiting for long.
pub(super) const PULL_BYTES: usize = 512 * 1024;

/// No such process (errno 3, errno-base.h).
const ESRCH: i32 = 3;

/// Why nothing was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// There is no such process.
    Gone,
    /// It is not permitted, or the memory is not there.
    Refused,
}

/// How many bytes one call copied; one at least.
pub(super) fn outcome(copied: io::Result<usize>) -> Result<usize, Fault> {
    match copied {
        Ok(count) if count > 0 => Ok(count),
        Err(error) if error.raw_os_error() == Some(ESRCH) => Err(Fault::Gone),
        Ok(_) | Err(_) => Err(Fault::Refused),
    }
}

/// Calls, with place and length, until all of a stretch is copied.
pub(super) fn copy_all(
    mut stretch: Range<usize>,
    mut copy: impl FnMut(usize, usize) -> io::Result<usize>,
) -> Result<(), Fault> {
    while !stretch.is_empty() {
        stretch.start += outcome(copy(stretch.start, stretch.len()))?;
    }
    Ok(())
}
