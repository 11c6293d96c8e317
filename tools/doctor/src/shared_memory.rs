// SPDX-License-Identifier: Apache-2.0 OR MIT
//! /dev/shm around jobs: what is mounted there, whether the ranks of each MPI find room, what dead
//! jobs left in it, and whether a job can have one of its own.
//!
//! Called by `lib.rs`. `memory.rs` tries whether pages can be had there. Sources: shm_overview(7),
//! statfs(2), statvfs(3), unshare(2).

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::statvfs::{FsFlags, statvfs};
use weft_launch::discover::Installation;
use weft_launch::fault::Fault;
use weft_launch::number_text::size;
use weft_launch::{cores, dev_shm, leftovers};

use crate::check::{Check, Status, shell_word};

const PLACE: &str = "/dev/shm";
/// Any user may make files there, and remove only their own. Specified by Debian's and systemd's
/// mount of it.
const MODE: u32 = 0o1777;

/// All checks of this file.
#[must_use]
pub fn checks(mpis: &[Installation]) -> Vec<Check> {
    let found = found();
    vec![
        mounted(found),
        room(cores::allowed().usable_count, mpis, found),
        left(&leftovers::abandoned()),
        own(dev_shm::trial()),
    ]
}

/// What is at /dev/shm.
#[derive(Debug, Clone, Copy)]
struct Found {
    is_tmpfs: bool,
    mode: u32,
    runs_programs: bool,
    bytes: u64,
    free_bytes: u64,
}

fn found() -> Option<Found> {
    let (kind, facts) = (statfs(PLACE).ok()?, statvfs(PLACE).ok()?);
    let mode = std::fs::metadata(PLACE).ok()?.permissions().mode() & 0o7777;
    Some(Found {
        is_tmpfs: kind.filesystem_type() == TMPFS_MAGIC,
        mode,
        runs_programs: !facts.flags().contains(FsFlags::ST_NOEXEC),
        bytes: facts.blocks() * facts.fragment_size(),
        free_bytes: facts.blocks_available() * facts.fragment_size(),
    })
}

fn mounted(found: Option<Found>) -> Check {
    let name = "mount of /dev/shm";
    let why = "MPIs and other programs keep shared memory there";
    let Some(found) = found else {
        return Check::ok(name, "there is no /dev/shm", why).but(
            Status::Warn,
            "as root: mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
        );
    };
    let kind = if found.is_tmpfs { "tmpfs" } else { "no tmpfs" };
    let noexec = if found.runs_programs { "" } else { ", noexec" };
    let value = format!(
        "{kind} of {}, {} free, mode {:o}{noexec}",
        size(found.bytes),
        size(found.free_bytes),
        found.mode
    );
    Check::ok(name, value, why)
        .but_if(
            found.mode != MODE,
            Status::Warn,
            "as root: chmod 1777 /dev/shm",
        )
        .but_if(
            !found.is_tmpfs,
            Status::Warn,
            "as root: mount -t tmpfs -o mode=1777 tmpfs /dev/shm; what lies there now goes to a \
             disk",
        )
}

/// Whether a rank on each core finds room for what its MPI makes there.
fn room(ranks: u32, mpis: &[Installation], found: Option<Found>) -> Check {
    let takers = mpis.iter().map(|mpi| Taker {
        name: format!("{} {}", mpi.family, mpi.version),
        bytes: dev_shm::most_bytes(mpi, ranks),
    });
    judge_room(
        ranks,
        &takers.collect::<Vec<_>>(),
        found.map_or(0, |found| found.free_bytes),
    )
}

/// An MPI, and what its ranks take of /dev/shm at most.
struct Taker {
    name: String,
    bytes: u64,
}

fn judge_room(ranks: u32, takers: &[Taker], free_bytes: u64) -> Check {
    let name = "room in /dev/shm";
    let why = "a rank that writes to shared memory when /dev/shm is full ends by SIGBUS; beside \
               what MPIs take, many programs take more of it (4 GiB is a common advice)";
    let Some(most) = takers.iter().map(|taker| taker.bytes).max() else {
        return Check::ok(name, "no MPI was found", why).not_tried("install an MPI");
    };
    let ranks = if ranks == 1 {
        "1 rank".to_owned()
    } else {
        format!("{ranks} ranks, one on each core,")
    };
    let takes: Vec<String> = takers
        .iter()
        .map(|taker| format!("{} of {}", size(taker.bytes), taker.name))
        .collect();
    let value = format!(
        "{ranks} may take {}; {} are free",
        takes.join(", "),
        size(free_bytes)
    );
    let ask_mib = (most >> 20).max(1).next_power_of_two();
    Check::ok(name, value, why)
        .but_if(
            free_bytes < most,
            Status::Warn,
            &format!(
                "weft run --shm-size {ask_mib}m gives the job a /dev/shm of its own; or as root: \
                 mount -o remount,size={ask_mib}m /dev/shm"
            ),
        )
        .limited_by(format!("at least {} free", size(most)))
}

fn left(files: &[(PathBuf, u64)]) -> Check {
    let name = "left in /dev/shm";
    let why = "shared memory of killed jobs takes memory until somebody removes it";
    let Some((first, _)) = files.first() else {
        return Check::ok(name, "no MPI left a file of yours there", why);
    };
    let bytes = files.iter().map(|(_, bytes)| bytes).sum();
    let value = format!(
        "{} files of {} that no process has open, first {}",
        files.len(),
        size(bytes),
        first.display()
    );
    // Three show what they look like.
    let names: Vec<String> = files
        .iter()
        .take(3)
        .map(|(path, _)| shell_word(path))
        .collect();
    let more = if files.len() > names.len() {
        " ..."
    } else {
        ""
    };
    Check::ok(name, value, why).but(Status::Warn, format!("rm {}{more}", names.join(" ")))
}

fn own(tried: Result<(), Fault>) -> Check {
    let name = "own /dev/shm";
    let why = "--shm-size and --mount give the ranks of a job namespaces of their own";
    match tried {
        Ok(()) => Check::ok(name, "one of 1.0 MiB was made for a process", why),
        Err(why_not) => Check::ok(name, why_not.to_string(), why).but(
            Status::Warn,
            "the reason says what to change; a job with --shm-size try:SIZE goes on without",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Found = Found {
        is_tmpfs: true,
        mode: MODE,
        runs_programs: true,
        bytes: 4 << 30,
        free_bytes: 3 << 30,
    };

    #[test]
    fn what_is_mounted_is_judged_by_kind_and_mode() {
        let check = mounted(Some(GOOD));
        assert_eq!(check.value, "tmpfs of 4.0 GiB, 3.0 GiB free, mode 1777");
        assert_eq!(check.status, Status::Ok);
        let closed = mounted(Some(Found {
            mode: 0o755,
            ..GOOD
        }));
        closed.assert_wrong(Status::Warn, "chmod 1777 /dev/shm");
        let disk = mounted(Some(Found {
            is_tmpfs: false,
            ..GOOD
        }));
        disk.assert_wrong(Status::Warn, "what lies there now goes to a disk");
        let noexec = mounted(Some(Found {
            runs_programs: false,
            ..GOOD
        }));
        assert!(noexec.status == Status::Ok && noexec.value.ends_with(", noexec"));
        mounted(None).assert_wrong(Status::Warn, "mkdir -p /dev/shm && mount -t tmpfs");
    }

    #[test]
    fn room_is_judged_by_the_mpi_whose_ranks_take_most() {
        let taker = |name: &str, mib: u64| Taker {
            name: name.to_owned(),
            bytes: mib << 20,
        };
        let takers = [taker("openmpi 5.0.11", 96), taker("mpich 5.0.2", 36)];
        let check = judge_room(6, &takers, 96 << 20);
        assert_eq!(check.status, Status::Ok, "{check:?}");
        assert!(check.value.starts_with("6 ranks"), "{check:?}");
        assert!(
            check
                .value
                .contains("36.0 MiB of mpich 5.0.2; 96.0 MiB are free")
        );
        let check = judge_room(6, &takers, (96 << 20) - 1);
        check.assert_wrong(Status::Warn, "--shm-size 128m");
        assert_eq!(check.limit, "at least 96.0 MiB free");
        assert_eq!(judge_room(2, &[], 0).status, Status::NotTried);
    }

    #[test]
    fn files_of_dead_jobs_are_named_with_what_removes_them() {
        assert_eq!(left(&[]).status, Status::Ok);
        let file = |name: &str| (PathBuf::from(name), 1 << 20);
        let check = left(&[file("/dev/shm/a"), file("/dev/shm/b")]);
        assert!(check.value.starts_with("2 files of 2.0 MiB"), "{check:?}");
        check.assert_wrong(Status::Warn, "rm /dev/shm/a /dev/shm/b");
        let odd = left(&[file("/dev/shm/vader a;b")]);
        odd.assert_wrong(Status::Warn, "rm '/dev/shm/vader a;b'");
        let many = ["/a", "/b", "/c", "/d"].map(file);
        assert_eq!(left(&many).fix, "rm /a /b /c ...");
    }

    #[test]
    fn a_host_that_refuses_namespaces_is_a_warning_with_its_reason() {
        assert_eq!(own(Ok(())).status, Status::Ok);
        let check = own(Err(Fault::Limit(
            "user.max_user_namespaces is 0".to_owned(),
        )));
        check.assert_wrong(Status::Warn, "--shm-size try:SIZE");
        assert!(check.value.contains("is 0"), "{check:?}");
    }
}
