// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file behind a region: anonymous memory, or a nameless file in a folder, which may be full
//! some day. Called by transport at set-up, by contact for a lane, by pipelined for a pipe.
//!
//! A page that a full file system cannot give is a fatal signal to whoever touches it. Regions in a
//! folder therefore have their pages reserved before they are used; anonymous memory is taken as it
//! is touched, which costs less.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use weft_os::region_file::{create_in, create_memfd, is_length_sealed, reserve};
use weft_ring::layout::{
    LANE_NARROW_BYTES, PAGE_BYTES, PIPE_BYTES, PIPES_OFFSET, REGION_BYTES, lane_offset, pipe_offset,
};

use crate::settings::{OpenError, Settings};

/// Where regions go when the system refuses anonymous memory and the user names no folder.
/// Specified: it is in memory on every Linux that has it.
const SHARED_MEMORY: &str = "/dev/shm";

/// Operation not permitted, and no such system call (errno 1 and 38): what filters of system calls
/// answer.
const REFUSED: [i32; 2] = [1, 38];

/// Makes the file of a region, by a name that /proc shows. Set-up.
pub(crate) fn make_file(settings: &Settings, name: &str) -> Result<OwnedFd, OpenError> {
    let length_bytes = REGION_BYTES as u64;
    let in_folder = |folder: &Path| {
        create_in(folder, length_bytes)
            .and_then(|file| {
                let file = reserve_header(file)?;
                let descriptor = std::os::fd::AsFd::as_fd(&file);
                reserve_pipe(descriptor, 0)?;
                Ok(file)
            })
            .map_err(|error| OpenError::Directory(folder.to_owned(), error))
    };
    if let Some(folder) = &settings.directory {
        return in_folder(folder);
    }
    match create_memfd(name, length_bytes) {
        Ok(file) => reserve_header(file).map_err(OpenError::Region),
        Err(error)
            if REFUSED
                .iter()
                .any(|&errno| error.raw_os_error() == Some(errno)) =>
        {
            in_folder(Path::new(SHARED_MEMORY))
        }
        Err(error) => Err(OpenError::Region(error)),
    }
}

/// Reserves the header, the slots, and what tells remotes of registered memory.
fn reserve_header(file: OwnedFd) -> io::Result<OwnedFd> {
    reserve(std::os::fd::AsFd::as_fd(&file), 0, PIPES_OFFSET as u64)?;
    Ok(file)
}

/// Whether pages are there when they are touched, as far as this process may use memory at all.
pub(crate) fn grows(file: BorrowedFd<'_>) -> bool {
    is_length_sealed(file)
}

/// Reserves what a narrow lane uses. Set-up.
pub(crate) fn reserve_lane(file: BorrowedFd<'_>, slot: usize) -> io::Result<()> {
    if grows(file) {
        return Ok(());
    }
    let offset = lane_offset(slot) as u64;
    reserve(file, offset, (PAGE_BYTES + LANE_NARROW_BYTES) as u64)
}

/// Reserves a pipe. Slow path: once for each pipe.
pub(crate) fn reserve_pipe(file: BorrowedFd<'_>, pipe: usize) -> io::Result<()> {
    if grows(file) {
        return Ok(());
    }
    reserve(file, pipe_offset(pipe) as u64, PIPE_BYTES as u64)
}
