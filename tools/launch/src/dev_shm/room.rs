// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a host has the memory for a `/dev/shm` of some size, how large the present one is, and
//! whether an MPI can do with that.
//!
//! Called by `dev_shm.rs` and `plan.rs`, and by `weft doctor`. What is written into a tmpfs is
//! memory of the writer's control group (tmpfs(5)), so its limit counts as much as the machine's
//! memory.

use nix::sys::statvfs::statvfs;
use weft_job::size::ShmSize;

use super::namespace::PLACE;
use super::refusal::Refusal;
use crate::discover::Installation;
use crate::family::Family;
use crate::limits::{self, Memory};
use crate::transport::Transport;

/// What each rank of an MPI takes of `/dev/shm` at most before the program itself takes any, in
/// MiB: over its own transport, and over any other. Measured, and rounded up
/// (docs/lab/2026-11-23-what-mpis-take-of-dev-shm.md).
fn mib_of_rank(mpi: &Installation, transport: &Transport) -> u64 {
    let is_native = *transport == Transport::Native;
    let (native, other) = match mpi.family {
        Family::OpenMpi if mpi.version.major >= 5 => (16, 16),
        Family::OpenMpi => (4, 0),
        Family::Mpich => (6, 2),
        Family::Intel => (8, 1),
    };
    if is_native { native } else { other }
}

/// What `ranks` ranks of this MPI take of `/dev/shm` at most before the program itself takes any,
/// in bytes: the larger of what they take over Weft and over the MPI's own transport.
#[must_use]
pub fn most_bytes(mpi: &Installation, ranks: u32) -> u64 {
    let [weft, native] = [Transport::Weft, Transport::Native].map(|way| mib_of_rank(mpi, &way));
    (weft.max(native) * u64::from(ranks)) << 20
}

/// Which size to ask for, where less than the MPI's ranks need is free; `None` where that will do.
pub(crate) fn advice(mpi: &Installation, transport: &Transport, ranks: u32) -> Option<String> {
    let wanted = mib_of_rank(mpi, transport) * u64::from(ranks);
    advice_for(wanted, present()?.1 >> 20, ranks)
}

fn advice_for(wanted_mib: u64, free_mib: u64, ranks: u32) -> Option<String> {
    if wanted_mib <= free_mib {
        return None;
    }
    let ask = wanted_mib.next_power_of_two();
    Some(format!(
        "{ranks} ranks of this MPI may take {wanted_mib}m of /dev/shm, beside what the program \
         makes there, and {free_mib}m are free; a rank that finds none may end by SIGBUS. \
         --shm-size {ask}m gives the job a /dev/shm of its own"
    ))
}

/// Whether so much can be had at all.
///
/// # Errors
/// The size, the limit and whose it is, and what to do.
pub(crate) fn check(size: ShmSize) -> Result<(), Refusal> {
    limits::memory().map_or(Ok(()), |memory| fits(size, memory))
}

fn fits(size: ShmSize, memory: Memory) -> Result<(), Refusal> {
    if size.bytes() <= memory.bytes {
        return Ok(());
    }
    Err(Refusal::Memory(memory))
}

/// The size of the `/dev/shm` that this process sees and what is free in it, in bytes. `None` where
/// there is none.
pub(crate) fn present() -> Option<(u64, u64)> {
    let found = statvfs(PLACE).ok()?;
    let bytes = |blocks: u64| blocks.checked_mul(found.fragment_size());
    Some((bytes(found.blocks())?, bytes(found.blocks_available())?))
}

/// The same for the end of a sentence.
pub(crate) fn present_in_words() -> String {
    present().map_or_else(String::new, |(all, free)| {
        format!(" ({}m, of which {}m are free)", all >> 20, free >> 20)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_above_the_memory_is_refused_with_both_and_whose_limit_it_is() {
        let mut memory = Memory {
            bytes: 1 << 30,
            group: None,
        };
        let size = |text: &str| text.parse().unwrap();
        assert_eq!(fits(size("1g"), memory.clone()), Ok(()));
        let said = fits(size("2g"), memory.clone()).unwrap_err().to_string();
        assert!(said.contains("this host has 1024m"), "{said}");
        memory.group = Some("/sys/fs/cgroup/job".into());
        let said = fits(size("try:2g"), memory).unwrap_err().to_string();
        assert!(said.contains("(/sys/fs/cgroup/job)") && said.contains("1024m at most"));
    }

    #[test]
    fn a_size_is_advised_only_where_the_mpi_needs_more_than_is_free() {
        assert_eq!(advice_for(64, 64, 4), None);
        let said = advice_for(96, 64, 6).unwrap();
        assert!(said.contains("6 ranks") && said.contains("96m"), "{said}");
        assert!(said.contains("64m are free") && said.contains("--shm-size 128m"));
        let four = Installation::nowhere(Family::OpenMpi, 4);
        assert_eq!(mib_of_rank(&four, &Transport::Weft), 0);
        assert_eq!(mib_of_rank(&four, &Transport::Native), 4);
        assert_eq!(advice(&four, &Transport::Weft, 1000), None);
        assert_eq!(most_bytes(&four, 3), 12 << 20);
    }
}
