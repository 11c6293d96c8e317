// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory: anonymous shared files, limits on memory and files, /dev/shm for the MPIs' own shared memory, large pages.
//!
//! Called by `lib.rs` and `info.rs`. Source: memfd_create(2), getrlimit(2), shm_overview(7), Documentation/admin-guide/mm/transhuge.rst.

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use weft_launch::report::size;

use crate::cgroup;
use crate::check::{Check, Status};
use crate::tree::Tree;

/// Below this a job of a few ranks has no room beside the program's own data. Chosen.
const SMALLEST_LIMIT_BYTES: u64 = 256 << 20;
/// The size that container engines give /dev/shm by default, too small for the MPIs' own shared memory. Specified by Docker and Podman.
const CONTAINER_DEFAULT_BYTES: u64 = 64 << 20;
/// Open files below which a job of hundreds of ranks on one machine may run out. Chosen: one region and one socket for each remote, and the
/// program's own.
const FEWEST_FILES: u64 = 1024;

/// All checks of this file.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    vec![
        shared_file(),
        limit(cgroup::memory_limit_bytes(tree), total_bytes(tree)),
        dev_shm(dev_shm_bytes()),
        files(soft(Resource::RLIMIT_NOFILE)),
        address_space(soft(Resource::RLIMIT_AS)),
        locked(soft(Resource::RLIMIT_MEMLOCK)),
        large_pages(
            tree.text("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
                .as_deref(),
        ),
    ]
}

fn shared_file() -> Check {
    let why = "ranks share memory through anonymous files, which leave nothing behind and need no /dev/shm";
    match weft_os::region_file::create_memfd("weft-doctor", 1 << 20) {
        Ok(file) if weft_os::region_file::is_length_sealed(std::os::fd::AsFd::as_fd(&file)) => {
            Check::ok(
                "anonymous files",
                "memfd_create works, with a sealed length",
                why,
            )
        }
        Ok(_) => Check::ok(
            "anonymous files",
            "memfd_create works, but the length cannot be sealed",
            why,
        )
        .but(
            Status::Fail,
            "use a kernel of 3.17 or later whose seccomp filter allows fcntl F_ADD_SEALS",
        ),
        Err(error) => refused_file(
            &error.to_string(),
            create_nameless().map_err(|error| error.to_string()),
        ),
    }
}

/// What Weft falls back to: a nameless file in /dev/shm.
fn create_nameless() -> std::io::Result<()> {
    weft_os::region_file::create_in(std::path::Path::new("/dev/shm"), 1 << 20).map(drop)
}

fn refused_file(why_not: &str, nameless: Result<(), String>) -> Check {
    let why = "ranks share memory through anonymous files, which leave nothing behind; where the system refuses them Weft takes nameless files \
               in /dev/shm, whose size then bounds how many ranks have room";
    let fix = "allow memfd_create in the container's seccomp profile (Docker's default profile allows it), or name another folder in memory in \
               FI_WEFT_REGION_DIR";
    match nameless {
        Ok(()) => Check::ok(
            "anonymous files",
            format!("memfd_create: {why_not}; nameless files in /dev/shm are used"),
            why,
        )
        .but(Status::Warn, fix),
        Err(error) => Check::ok(
            "anonymous files",
            format!("memfd_create: {why_not}; a nameless file in /dev/shm: {error}"),
            why,
        )
        .but(Status::Fail, fix),
    }
}

fn total_bytes(tree: &Tree) -> Option<u64> {
    let text = tree.field("/proc/meminfo", "MemTotal")?;
    Some(text.strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn limit(limit: Option<u64>, total: Option<u64>) -> Check {
    let real = limit.into_iter().chain(total).min();
    let value = match (limit, total) {
        (Some(limit), Some(total)) if limit < total => format!(
            "{} (control group; the machine has {})",
            size(limit),
            size(total)
        ),
        (_, Some(total)) => format!("{} (the machine's; no lower limit is set)", size(total)),
        (Some(limit), None) => size(limit),
        (None, None) => "not told by this machine".to_owned(),
    };
    let why = "shared regions count against the memory of the control group, and going over it kills ranks without a word";
    Check::ok("memory", value, why).but_if(
        real.is_some_and(|bytes| bytes < SMALLEST_LIMIT_BYTES),
        Status::Warn,
        "raise the memory limit of the container or of the batch job",
    )
}

fn dev_shm_bytes() -> Option<u64> {
    statvfs("/dev/shm")
        .ok()
        .map(|facts| facts.blocks() * facts.fragment_size())
}

fn dev_shm(bytes: Option<u64>) -> Check {
    let why = "Weft does not use it, but the MPIs' own shared memory does (--transport native, windows), and dies of SIGBUS when it is full";
    let value = bytes.map_or_else(|| "not mounted".to_owned(), size);
    Check::ok("/dev/shm", value, why).but_if(
        bytes.is_none_or(|bytes| bytes <= CONTAINER_DEFAULT_BYTES),
        Status::Warn,
        "start the container with a larger one, for example docker run --shm-size=4g",
    )
}

/// The limit in force; `None` for unlimited.
fn soft(resource: Resource) -> Option<u64> {
    getrlimit(resource)
        .ok()
        .map(|(soft, _)| soft)
        .filter(|&soft| soft != nix::sys::resource::RLIM_INFINITY)
}

fn files(limit: Option<u64>) -> Check {
    let value = limit.map_or_else(|| "unlimited".to_owned(), |count| count.to_string());
    let why = "each remote process on this machine that a rank talks to takes an open file or two";
    Check::ok("open files", value, why).but_if(
        limit.is_some_and(|count| count < FEWEST_FILES),
        Status::Warn,
        "ulimit -n 4096",
    )
}

fn address_space(limit: Option<u64>) -> Check {
    let value = limit.map_or_else(|| "unlimited".to_owned(), size);
    let why = "regions are mapped at their full length though only the pages in use take memory, so a limit on addresses is met long before one on memory";
    Check::ok("address space", value, why).but_if(
        limit.is_some(),
        Status::Warn,
        "ulimit -v unlimited; limit memory with a control group instead",
    )
}

fn locked(limit: Option<u64>) -> Check {
    let value = limit.map_or_else(|| "unlimited".to_owned(), size);
    Check::ok(
        "locked memory",
        value,
        "Weft locks none; InfiniBand and other verbs providers need it unlimited",
    )
}

fn large_pages(setting: Option<&str>) -> Check {
    let chosen = setting.and_then(|text| text.split('[').nth(1)?.split(']').next());
    let why = "with advise, within_size or always, large shared regions take fewer page faults; never costs a little at first use";
    Check::ok(
        "large shared pages",
        chosen.unwrap_or("not offered by this kernel"),
        why,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_of_limit_and_machine_is_judged() {
        assert_eq!(limit(Some(100 << 20), Some(8 << 30)).status, Status::Warn);
        assert_eq!(limit(None, Some(100 << 20)).status, Status::Warn);
        assert_eq!(limit(None, Some(8 << 30)).status, Status::Ok);
        assert!(
            limit(Some(1 << 30), Some(8 << 30))
                .value
                .starts_with("1.0 GiB (control group")
        );
        assert!(
            limit(Some(9 << 30), Some(8 << 30))
                .value
                .contains("no lower limit")
        );
    }

    #[test]
    fn the_container_default_of_dev_shm_is_a_warning() {
        assert_eq!(dev_shm(Some(64 << 20)).status, Status::Warn);
        assert_eq!(dev_shm(None).status, Status::Warn);
        assert_eq!(dev_shm(Some(1 << 30)).status, Status::Ok);
    }

    #[test]
    fn limits_are_judged_and_unlimited_is_well() {
        assert_eq!(
            (
                files(Some(256)).status,
                files(Some(1024)).status,
                files(None).status
            ),
            (Status::Warn, Status::Ok, Status::Ok)
        );
        assert_eq!(
            (
                address_space(Some(1 << 40)).status,
                address_space(None).status
            ),
            (Status::Warn, Status::Ok)
        );
        assert_eq!(locked(Some(64 << 10)).status, Status::Ok);
    }

    #[test]
    fn the_setting_in_brackets_is_the_one_in_force() {
        assert_eq!(
            large_pages(Some("always within_size advise [never] deny force")).value,
            "never"
        );
        assert_eq!(large_pages(None).value, "not offered by this kernel");
    }

    #[test]
    fn refused_anonymous_files_are_a_warning_while_dev_shm_can_replace_them() {
        let check = refused_file("Operation not permitted", Ok(()));
        assert_eq!(check.status, Status::Warn);
        assert!(check.fix.contains("FI_WEFT_REGION_DIR"));
        let check = refused_file("Operation not permitted", Err("full".to_owned()));
        assert_eq!(check.status, Status::Fail);
    }

    #[test]
    fn anonymous_files_work_where_these_tests_run() {
        assert_eq!(shared_file().status, Status::Ok);
    }
}
