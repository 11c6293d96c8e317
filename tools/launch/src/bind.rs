// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bind`: binds a rank to a core of its own and becomes the program.
//!
//! What MPICH's ranks are started with instead of `mpiexec -bind-to core`: a job in which Hydra
//! (5.0.2) bound the ranks ends at its first MPI_Comm_spawn, with "duplicate setting: binding".
//! The cores are taken in their order, as Hydra takes them with `-map-by core`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::cores;
use crate::stderr::say;

/// The number of a rank among those on its host, as Hydra gives it.
const LOCAL_RANK: &str = "MPI_LOCALRANKID";

/// Binds this process and becomes the program that the words name; returns only where that fails,
/// with the exit code of a shell.
#[must_use]
pub fn run(words: Vec<OsString>) -> u8 {
    let Some((program, arguments)) = words.split_first() else {
        say!("weft bind: no program was named");
        return 2;
    };
    let local_rank = std::env::var(LOCAL_RANK).ok();
    if let Some(core) = local_rank.and_then(|text| text.parse().ok()).and_then(of) {
        let mut mask = CpuSet::new();
        let set = core.iter().try_for_each(|&number| mask.set(number));
        if let Err(error) = set.and_then(|()| sched_setaffinity(Pid::from_raw(0), &mask)) {
            say!("weft bind: the rank is not bound to a core: {error}");
        }
    }
    let error = Command::new(program).args(arguments).exec();
    say!(
        "weft bind: {} cannot be started: {error}",
        Path::new(program).display()
    );
    match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}

/// The hardware threads of the core for the rank of that number on this host.
fn of(local_rank: usize) -> Option<Vec<usize>> {
    let mut cores = cores::by_core();
    (!cores.is_empty()).then(|| cores.swap_remove(local_rank % cores.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_get_cores_of_their_own_until_there_are_no_more() {
        let cores = cores::by_core();
        for rank in 0..2 * cores.len() {
            assert_eq!(of(rank).as_ref(), Some(&cores[rank % cores.len()]));
        }
    }
}
