// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether one rank can load from and store to another's registered memory by itself
//! (docs/one-sided.md, clause 8), tried as ranks would: a piece of shared memory here is mapped by
//! another process, found by this one's number and the address alone.
//!
//! Called by `lib.rs` and `info.rs`. The other process is `weft doctor --map-memory` (attempt).
//! Source: proc_pid_maps(5), proc_pid_fd(5).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use weft_memory::{BytesViewMut, Mapping, RemoteMemory};

use crate::attempt::{self, FetchError, PROBE_BYTES};
use crate::check::{Check, Status};

const NAME: &str = "direct access";
const WHY: &str = "one-sided operations (MPI_Put, MPI_Get) on windows in shared files \
                   (MPI_Win_allocate of Open MPI and Intel MPI) need no message and no help of \
                   their target: some 0.2 us instead of 1 us, and they end while the target \
                   computes; private memory from 8 KiB to 1 MiB goes by single copy, the rest by \
                   messages";

/// What was done.
const WORKS: &str = "another process mapped shared memory of this one, found by its address alone";

/// Where the bytes lie in their file: on its second page, as windows begin anywhere.
const OFFSET_BYTES: u64 = 4096 + 64;
const FILE_BYTES: usize = 8192;

/// The check; `executable` is the `weft` that is started to look.
#[must_use]
pub fn check(executable: Option<&Path>) -> Check {
    match executable {
        Some(executable) => judge(attempt(executable)),
        None => attempt::alone(NAME, WHY),
    }
}

fn judge(attempt: io::Result<()>) -> Check {
    match attempt {
        Ok(()) => Check::ok(NAME, WORKS, WHY),
        Err(why) => Check::ok(
            NAME,
            format!("{why}; one-sided operations go by messages"),
            WHY,
        )
        .but(
            Status::Warn,
            "let ranks see each other: one user, one container for the job, /proc mounted without \
             hidepid, kernel.yama.ptrace_scope of 1 or 0",
        ),
    }
}

fn attempt(executable: &Path) -> io::Result<()> {
    let secret = attempt::secret()?;
    let file = File::from(weft_os::region_file::create_memfd(
        "weft-doctor",
        FILE_BYTES as u64,
    )?);
    file.write_all_at(&secret, OFFSET_BYTES)?;
    let mapping = Mapping::shared(file.as_fd(), FILE_BYTES)?;
    let address = mapping
        .bytes(OFFSET_BYTES as usize, PROBE_BYTES)
        .map_err(|_| io::Error::other("the mapping is shorter than its file"))?;
    let otherwise =
        "the mapping of another process's memory showed other bytes than that memory has";
    attempt::fetch(
        executable,
        "--map-memory",
        address as usize,
        &secret,
        otherwise,
    )
}

/// The other side of the attempt: maps the memory at the process and address in `target`
/// (`PID:ADDRESS`) and writes what is there to standard output.
///
/// # Errors
/// When the target is malformed or the memory cannot be mapped.
pub fn map_memory(target: &str) -> Result<(), FetchError> {
    let (pid, address) = attempt::target(target)?;
    let pid = pid.unsigned_abs();
    let memory = RemoteMemory::map(pid, address as u64, PROBE_BYTES as u64);
    let memory = memory.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => FetchError::NoFile(pid),
        _ => FetchError::Maps { pid, source },
    })?;
    let mut bytes = [0; PROBE_BYTES];
    memory.with(0, PROBE_BYTES, |there| {
        there.drain(0, &mut BytesViewMut::from_slice(&mut bytes))
    });
    Ok(io::stdout().write_all(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_warning_that_says_what_goes_otherwise_and_what_to_do() {
        let check = judge(Err(io::Error::other("/proc/7/maps cannot be read")));
        check.assert_wrong(Status::Warn, "hidepid");
        assert!(check.value.contains("/proc/7/maps") && check.value.contains("by messages"));
        assert_eq!(judge(Ok(())).status, Status::Ok);
        assert_eq!(super::check(None).status, Status::NotTried);
    }

    #[test]
    fn a_target_that_is_none_is_named() {
        for target in ["", "7", "7:x", "x:7", "-7:7"] {
            let why = map_memory(target).unwrap_err().to_string();
            assert!(why.contains("PID:ADDRESS"), "{why}");
        }
    }

    #[test]
    fn memory_in_no_shared_file_is_said_to_be_so() {
        let word = 7_u64;
        let target = format!("{}:{}", std::process::id(), &raw const word as usize);
        let why = map_memory(&target).unwrap_err().to_string();
        assert!(why.contains("no file"), "{why}");
    }
}
