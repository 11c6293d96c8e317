// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rank that exits with an error and without MPI_Finalize: the launcher hears its exit code.
//!
//! Hydra, the launcher of MPICH, hears of such a rank that its output ends, that its connection
//! ends, and what it exited with, in any order. By the order, it ends the job with that code or
//! with 9, or waits for the other ranks forever; on another host it always waits. An MPI_Abort ends
//! the job with the code that the rank names. So this library sends what MPI_Abort sends, once the
//! rank has ended: nothing that it wrote is lost.
//!
//! Intel's Hydra always ends such a job with 255, and is left alone. Other launchers
//! tell the exit code by themselves.
//!
//! The loader calls [`AT_LOAD`]. The end of any rank also goes to other_tool. Source: PMI-1,
//! "abort", and the variables of a rank, as MPICH 5.0.2 (src/pm/hydra) has them.

use std::env;
use std::ffi::{CStr, c_int};
use std::os::fd::RawFd;

use weft_facts::parameter::REPORT;
use weft_os::at_exit::{at_exit, send_after_end};

use crate::next::definition_at_exit;
use crate::other_tool;

/// Hydra's process on each host, as the kernel shortens its name (proc(5)).
const PROXY: &[u8] = b"hydra_pmi_proxy";

#[used]
// SAFETY: the section holds addresses of functions that the loader calls.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    if is_rank_of_weft_run(&|name| env::var(name).ok()) {
        // Without memory for that, the rank ends as it would without this library.
        let _ = at_exit(end);
    }
}

fn end(exit_code: i32) {
    other_tool::tell(|| says(c"PMPI_Initialized") == Some(true));
    tell_launcher(exit_code);
}

fn is_rank_of_weft_run(get: &impl Fn(&str) -> Option<String>) -> bool {
    get(REPORT.variable).is_some_and(|socket| socket != "1")
}

/// The descriptor that MPICH's Hydra opened for this rank of `weft run`; `None` in other jobs:
/// whoever calls mpiexec can tell it to let the other ranks go on (`-disable-auto-cleanup`).
fn hydras_descriptor(get: impl Fn(&str) -> Option<String>) -> Option<RawFd> {
    is_rank_of_weft_run(&get).then_some(())?;
    get("PMI_HOSTNAME")?;
    let descriptor = get("PMI_FD")?.parse().ok()?;
    (descriptor > 2).then_some(descriptor)
}

fn tell_launcher(exit_code: i32) {
    let Some(descriptor) = hydras_descriptor(|name| env::var(name).ok()) else {
        return;
    };
    // The system keeps eight bits of it (exit(3)).
    let exit_code = exit_code & 0xff;
    if exit_code != 0 && is_started_by_hydra() && is_within_mpi() {
        let line = format!("cmd=abort exitcode={exit_code}\n");
        // Without a child the line is sent at once.
        let _ = send_after_end(descriptor, line.as_bytes());
    }
}

/// Whether this process is the one that Hydra started. A script around the program may go on when
/// the program has ended, and its exit code counts.
fn is_started_by_hydra() -> bool {
    let name = std::fs::read(format!(
        "/proc/{}/comm",
        std::os::unix::process::parent_id()
    ));
    name.is_ok_and(|name| name.trim_ascii_end() == PROXY)
}

/// Whether the rank is between MPI_Init and MPI_Finalize.
fn is_within_mpi() -> bool {
    says(c"PMPI_Initialized") == Some(true) && says(c"PMPI_Finalized") == Some(false)
}

/// What MPI_Initialized or MPI_Finalized says; `None` without an MPI.
fn says(name: &CStr) -> Option<bool> {
    type Ask = unsafe extern "C" fn(*mut c_int) -> c_int;
    let found = definition_at_exit(name)?;
    let mut flag = 0;
    // SAFETY: the standard's type for both names; both may be called at any time.
    let code = unsafe { std::mem::transmute::<*mut _, Ask>(found.as_ptr())(&mut flag) };
    (code == 0).then_some(flag != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hydra_of_mpich_below_weft_run_is_told() {
        const ALL: [(&str, &str); 3] = [
            ("PMI_FD", "9"),
            ("PMI_HOSTNAME", "n1"),
            ("FI_WEFT_REPORT", "weft-1"),
        ];
        let found = |changed: &str, value: Option<&str>| {
            hydras_descriptor(|name| {
                let (_, usual) = ALL.iter().find(|(known, _)| *known == name)?;
                let value = if name == changed { value } else { Some(*usual) };
                value.map(str::to_owned)
            })
        };
        assert_eq!(found("", None), Some(9));
        // Slurm's PMI-2 and Intel's Hydra open a descriptor too.
        assert_eq!(found("PMI_HOSTNAME", None), None);
        assert_eq!(found("PMI_FD", None), None);
        assert_eq!(found("PMI_FD", Some("1")), None, "that is its output");
        // weft exec; and a user who wants rank 0 to report.
        assert_eq!(found("FI_WEFT_REPORT", None), None);
        assert_eq!(found("FI_WEFT_REPORT", Some("1")), None);
    }
}
