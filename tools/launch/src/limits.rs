// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits that a job may have met: named, with their values, when it failed by itself.
//! Launchers and MPIs say "Cannot allocate memory" or "Resource temporarily unavailable", and not
//! why.
//!
//! Called by `job.rs` before, and by `lib.rs` before and after the job. Sources: getrlimit(2);
//! cgroups(7), memory.events of version 2 and memory.oom_control of version 1; proc(5),
//! max_map_count.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};

use crate::discover::Installation;
use crate::family::Family;
use crate::fault::Fault;
use crate::transport::Settings;

/// Descriptors below which ranks on one machine may miss some: each remote and each library takes
/// some. Chosen.
const FEW_FILES: u64 = 256;
/// Processes and threads below which a job may not start. Chosen: a rank has up to four threads.
const FEW_PROCESSES: u64 = 1024;
/// With more processes left than that, those that run are not counted. Chosen.
const MANY_PROCESSES: u64 = 50_000;
/// Most mappings of a process by default. Specified by the kernel (DEFAULT_MAX_MAP_COUNT).
const USUAL_MAPPINGS: u64 = 65530;

/// What the machine's shell and control group allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    addresses_bytes: Option<u64>,
    file_bytes: Option<u64>,
    files: Option<u64>,
    processes: Option<u64>,
    locked_bytes: Option<u64>,
    mappings: Option<u64>,
    group: Option<Group>,
}

/// A control group with a limit on memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// The one of this process.
    own: PathBuf,
    /// The one with the limit: that, or one above.
    folder: PathBuf,
    limit_bytes: u64,
    kills: u64,
}

impl Limits {
    /// Those of this process, which its children have too.
    #[must_use]
    pub fn here() -> Self {
        let of = |which| match getrlimit(which) {
            Ok((soft, _)) if soft != nix::sys::resource::RLIM_INFINITY => Some(soft),
            _ => None,
        };
        Self {
            addresses_bytes: of(Resource::RLIMIT_AS),
            file_bytes: of(Resource::RLIMIT_FSIZE),
            files: of(Resource::RLIMIT_NOFILE).filter(|&most| most < FEW_FILES),
            processes: of(Resource::RLIMIT_NPROC).filter(|&most| most < FEW_PROCESSES),
            locked_bytes: of(Resource::RLIMIT_MEMLOCK).filter(|&most| most == 0),
            mappings: number(Path::new("/proc/sys/vm/max_map_count"))
                .filter(|&most| most < USUAL_MAPPINGS),
            group: std::fs::read("/proc/self/cgroup")
                .ok()
                .and_then(|text| Group::of(&text, Path::new("/sys/fs/cgroup"))),
        }
    }

    /// What a job that failed may have met, in a sentence; `None` where nothing is limited. A
    /// kernel that killed for want of memory is a fact, the rest may be.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        if let Some(group) = &self.group {
            let now = group.count_kills();
            if now > group.kills {
                return Some(format!(
                    "the kernel killed {} of the job's processes: its control group may use {} MiB \
                     of memory (memory.max of {}); raise that, or start fewer ranks",
                    now - group.kills,
                    group.limit_bytes >> 20,
                    group.folder.display()
                ));
            }
        }
        let kib = |bytes: Option<u64>| bytes.map(|bytes| bytes >> 10);
        let set = [
            ("ulimit -v", kib(self.addresses_bytes), "KiB of addresses"),
            ("ulimit -f", kib(self.file_bytes), "KiB a file"),
            ("ulimit -n", self.files, "open files"),
            ("ulimit -u", self.processes, "processes of this user"),
            ("ulimit -l", kib(self.locked_bytes), "KiB of locked memory"),
            ("vm.max_map_count", self.mappings, "mappings"),
        ];
        let words: Vec<String> = set
            .into_iter()
            .filter_map(|(name, value, unit)| Some(format!("`{name}` allows {} {unit}", value?)))
            .collect();
        (!words.is_empty()).then(|| {
            format!(
                "the job failed while these limits were set: {}; raise them, unless its own \
                 message names another cause",
                words.join(", ")
            )
        })
    }
}

/// Files that PMIx makes for the ranks of Open MPI 4: a few MiB, more with many ranks. Chosen.
const STORE_BYTES: u64 = 64 << 20;

/// Has Open MPI 4 keep what its ranks tell each other in memory where `ulimit -f` forbids the files
/// that it keeps it in otherwise: its launcher would pass SIGXFSZ on to the ranks, and wait.
pub(crate) fn spare_files(settings: &mut Settings, mpi: &Installation) {
    let files = match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((soft, _)) => soft,
        Err(_) => return,
    };
    let said = std::env::var_os(STORE).is_some();
    if !said && needs_memory(mpi, files) {
        settings.launcher.set(STORE, "hash");
    }
}

/// Where PMIx keeps it (PMIX_MCA_gds).
const STORE: &str = "PMIX_MCA_gds";

fn needs_memory(mpi: &Installation, longest_file_bytes: u64) -> bool {
    mpi.family == Family::OpenMpi && mpi.version.major < 5 && longest_file_bytes < STORE_BYTES
}

/// What `weft run` needs beside the ranks: three threads of its own, the launcher and its daemon.
/// Counted.
const BESIDE: u64 = 5;

/// Whether this user may start so many ranks here: MPICH's launcher waits for ever for those that
/// it could not start.
///
/// # Errors
/// `Fault::Limit` where `ulimit -u` leaves fewer processes.
pub fn check_processes(ranks: u32) -> Result<(), Fault> {
    // Root may have as many as it likes (setrlimit(2)).
    let limit = match getrlimit(Resource::RLIMIT_NPROC) {
        Ok((soft, _)) if !nix::unistd::getuid().is_root() => soft,
        _ => return Ok(()),
    };
    let wanted = u64::from(ranks) + BESIDE;
    if limit.saturating_sub(wanted) > MANY_PROCESSES {
        return Ok(());
    }
    fits(limit, own_tasks(), ranks)
}

fn fits(limit: u64, running: u64, ranks: u32) -> Result<(), Fault> {
    let wanted = u64::from(ranks) + BESIDE;
    if running + wanted <= limit {
        return Ok(());
    }
    Err(Fault::Limit(format!(
        "`ulimit -u` allows this user {limit} processes and threads, of which {running} run: \
         {ranks} ranks and their launcher need {wanted} more; raise it, or start fewer ranks"
    )))
}

/// Threads of all processes of this user.
fn own_tasks() -> u64 {
    let user = nix::unistd::getuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let own = entries.flatten().filter(|entry| {
        let is_process = entry.file_name().to_string_lossy().parse::<u32>().is_ok();
        is_process && entry.metadata().is_ok_and(|facts| facts.uid() == user)
    });
    own.filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok())
        .map(|tasks| tasks.count() as u64)
        .sum()
}

impl Group {
    /// The group that /proc/self/cgroup names, if its memory is limited.
    fn of(text: &[u8], root: &Path) -> Option<Self> {
        let lines = || text.split(|&byte| byte == b'\n');
        let own = lines().find_map(|line| {
            let number = memchr::memchr(b':', line)?;
            let at = line[number + 1..].strip_prefix(b"memory:")?;
            Some((root.join("memory"), at))
        });
        let unified =
            || lines().find_map(|line| Some((root.to_owned(), line.strip_prefix(b"0::")?)));
        let (above, at) = own.or_else(unified)?;
        // Its path is bytes, and the folder is opened by them.
        let at = Path::new(OsStr::from_bytes(at));
        let at = at.strip_prefix("/").unwrap_or(at);
        let limit = |folder: &PathBuf| {
            let files = ["memory.max", "memory.limit_in_bytes"].iter();
            let mut set = files.filter_map(|name| number(&folder.join(name)));
            // Version 1 says so when there is none.
            set.find(|&bytes| bytes < 1 << 60)
        };
        // A group above may allow less, as that of a batch system's job.
        let limited = at.ancestors().map(|at| above.join(at));
        let (limit_bytes, folder) = limited
            .filter_map(|folder| Some((limit(&folder)?, folder)))
            .min_by_key(|(bytes, _)| *bytes)?;
        let mut group = Self {
            own: above.join(at),
            folder,
            limit_bytes,
            kills: 0,
        };
        group.kills = group.count_kills();
        Some(group)
    }

    fn count_kills(&self) -> u64 {
        let files = ["memory.events", "memory.oom_control"];
        let texts = files
            .iter()
            .map(|name| std::fs::read_to_string(self.own.join(name)));
        texts
            .flatten()
            .find_map(|text| {
                let mut lines = text.lines();
                lines.find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
            })
            .unwrap_or(0)
    }
}

/// The memory that a job may use on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    /// How much.
    pub bytes: u64,
    /// The control group that allows no more; `None` where the machine has no more.
    pub group: Option<PathBuf>,
}

/// The machine's memory, or what a control group leaves of it. `None` where the system does not
/// say.
pub(crate) fn memory() -> Option<Memory> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = table.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
        kib.parse::<u64>().ok()?.checked_mul(1024)
    })?;
    let group = Limits::here().group;
    let group = group.filter(|group| group.limit_bytes < bytes);
    Some(Memory {
        bytes: group.as_ref().map_or(bytes, |group| group.limit_bytes),
        group: group.map(|group| group.folder),
    })
}

/// The same in bytes.
pub(crate) fn memory_bytes() -> Option<u64> {
    memory().map(|memory| memory.bytes)
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_files_change_where_open_mpi_4_keeps_what_ranks_tell() {
        let mpi = Installation::nowhere;
        let four = mpi(Family::OpenMpi, 4);
        assert!(needs_memory(&four, 1 << 20));
        assert!(!needs_memory(&four, nix::sys::resource::RLIM_INFINITY));
        assert!(!needs_memory(&mpi(Family::OpenMpi, 5), 1 << 20));
        assert!(!needs_memory(&mpi(Family::Mpich, 4), 1 << 20));
    }

    #[test]
    fn only_limits_that_are_set_are_named_with_their_values() {
        assert_eq!(Limits::default().in_words(), None);
        let some = Limits {
            addresses_bytes: Some(1 << 30),
            files: Some(64),
            ..Limits::default()
        };
        let text = some.in_words().unwrap();
        assert!(text.contains("`ulimit -v` allows 1048576 KiB"), "{text}");
        assert!(
            text.contains("`ulimit -n` allows 64 open files") && !text.contains("-f"),
            "{text}"
        );
    }

    #[test]
    fn ranks_for_whom_no_process_is_left_are_refused_with_the_numbers() {
        assert!(fits(14, 1, 8).is_ok() && fits(u64::MAX, 1000, u32::MAX).is_ok());
        let text = fits(13, 1, 8).unwrap_err().to_string();
        assert!(text.contains("`ulimit -u` allows this user 13"), "{text}");
        assert!(text.contains("of which 1 run: 8 ranks"), "{text}");
        assert!(own_tasks() > 0);
    }

    #[test]
    fn a_control_group_that_killed_is_named_in_both_versions() {
        for (line, below, limit, events) in [
            (
                &b"0::/a/caf\xe9"[..],
                &b"a/caf\xe9"[..],
                "memory.max",
                "memory.events",
            ),
            (
                b"4:memory:/a/b",
                b"memory/a/b",
                "memory.limit_in_bytes",
                "memory.oom_control",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let folder = root.path().join(OsStr::from_bytes(below));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(limit), "67108864\n").unwrap();
            std::fs::write(folder.join(events), "oom 5\noom_kill 3\n").unwrap();
            let text = [b"9:cpu:/x\n", line, b"\n"].concat();
            let group = Group::of(&text, root.path()).unwrap();
            assert_eq!(group.kills, 3);
            let limits = Limits {
                group: Some(group),
                ..Limits::default()
            };
            assert_eq!(limits.in_words(), None);
            std::fs::write(folder.join(events), "oom 5\noom_kill 5\n").unwrap();
            let text = limits.in_words().unwrap();
            assert!(
                text.contains("killed 2") && text.contains("64 MiB"),
                "{text}"
            );
            std::fs::write(folder.join(limit), "max\n").unwrap();
            assert_eq!(Group::of(line, root.path()), None);
        }
    }
}
