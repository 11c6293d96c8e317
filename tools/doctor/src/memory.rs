// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory, files and addresses as a rank needs them: taken, mapped and opened here, and given back.
//!
//! Called by `lib.rs` and `info.rs`. Source: memfd_create(2), getrlimit(2), shm_overview(7),
//! Documentation/admin-guide/mm/transhuge.rst.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use weft_launch::number_text::size;
use weft_memory::Mapping;
use weft_os::region_file;
use weft_ring::layout::{LANE_BYTES, REGION_BYTES, SHARED_BYTES};

use crate::cgroup;
use crate::check::{Check, Status};
use crate::tree::Tree;

/// Below this a job of a few ranks has no room beside the program's own data. Chosen.
const SMALLEST_LIMIT_BYTES: u64 = 256 << 20;
/// What is taken and written to. Chosen: what a rank of a job of eight uses of its regions, and
/// little enough that no other process dies of it where `SMALLEST_LIMIT_BYTES` are there.
const TOUCHED_BYTES: usize = 64 << 20;
/// The size that container engines give /dev/shm by default, too small for the MPIs' own shared
/// memory. Specified by Docker and Podman.
const CONTAINER_DEFAULT_BYTES: u64 = 64 << 20;
/// Files that are opened at once. Chosen: one region and one socket for each remote of a job of
/// hundreds of ranks on one machine; just below the usual `ulimit -n` of 1024.
const FILES_WANTED: usize = 1000;
/// Parts of others' regions that are mapped at once. Chosen: a job of some ranks.
const REGIONS_WANTED: usize = 8;
/// What is asked for in large pages: two of x86-64's.
const LARGE_BYTES: usize = 4 << 20;

/// All checks of this file.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    let room = room(cgroup::memory_limit_bytes(tree), tree);
    let may_take = room
        .least()
        .is_none_or(|bytes| bytes >= SMALLEST_LIMIT_BYTES);
    vec![
        shared_file(),
        memory(room, if may_take { take_memory() } else { 0 }),
        dev_shm(dev_shm_bytes(), may_take.then(reserve_shared)),
        files(open_many(), soft(Resource::RLIMIT_NOFILE)),
        address_space(map_many()),
        large_pages(
            map_large(tree),
            tree.text("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
                .as_deref(),
        ),
    ]
}

/// An anonymous file, made and attacked: nobody may shorten it.
fn shared_file() -> Check {
    judge_file(
        region_file::create_memfd("weft-doctor", 1 << 20)
            .map(|file| File::from(file).set_len(4096).is_ok()),
    )
}

/// `Ok(true)` where the file was made, and could be shortened.
fn judge_file(shortened: io::Result<bool>) -> Check {
    let why = "ranks share memory through anonymous files, which leave nothing behind and need no \
               /dev/shm; one that is shortened would kill who has mapped it";
    match shortened {
        Ok(false) => Check::ok(
            "anonymous files",
            "memfd_create made one, and shortening it was refused",
            why,
        ),
        Ok(true) => Check::ok(
            "anonymous files",
            "memfd_create made one, but its sealed length could be changed",
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
fn create_nameless() -> io::Result<()> {
    region_file::create_in(Path::new("/dev/shm"), 1 << 20).map(drop)
}

fn refused_file(why_not: &str, nameless: Result<(), String>) -> Check {
    let why = "ranks share memory through anonymous files, which leave nothing behind; where the \
               system refuses them Weft takes nameless files in /dev/shm, whose size then limits \
               the number of ranks";
    let fix = "allow memfd_create in the container's seccomp profile (Docker's default profile \
               allows it), or name another folder in memory in FI_WEFT_REGION_DIR";
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

/// Memory in bytes; `None` where the machine does not say.
#[derive(Debug, Clone, Copy, Default)]
struct Room {
    /// The control group's limit.
    limit: Option<u64>,
    /// All of the machine's.
    total: Option<u64>,
    /// What the machine could give now.
    available: Option<u64>,
}

impl Room {
    fn least(self) -> Option<u64> {
        self.limit.into_iter().chain(self.available).min()
    }

    fn describe(self) -> String {
        match (self.limit, self.total) {
            (Some(limit), Some(total)) if limit < total => format!(
                "{} (control group; the machine has {})",
                size(limit),
                size(total)
            ),
            (_, Some(total)) => size(total),
            (Some(limit), None) => size(limit),
            (None, None) => "how much there is cannot be read".to_owned(),
        }
    }
}

fn room(limit: Option<u64>, tree: &Tree) -> Room {
    let field = |key: &str| {
        let text = tree.field("/proc/meminfo", key)?;
        Some(text.strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    Room {
        limit,
        total: field("MemTotal"),
        available: field("MemAvailable"),
    }
}

/// Takes memory and writes to every page of it; answers how much.
fn take_memory() -> usize {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve_exact(TOUCHED_BYTES).is_err() {
        return 0;
    }
    bytes.resize(TOUCHED_BYTES, 1);
    std::hint::black_box(&bytes).len()
}

fn memory(room: Room, touched: usize) -> Check {
    let least = room.least();
    let too_little = least.is_some_and(|bytes| bytes < SMALLEST_LIMIT_BYTES);
    let tried = match (touched, least) {
        (1.., _) => format!("{} taken and written", size(touched as u64)),
        (0, Some(least)) if too_little => format!("{} left, so none was taken", size(least)),
        _ => format!("{} were refused", size(TOUCHED_BYTES as u64)),
    };
    let why = "shared regions count against the memory of the control group, and going over it \
               kills ranks without a message";
    Check::ok("memory", format!("{tried}, of {}", room.describe()), why)
        .but_if(
            too_little || touched == 0,
            Status::Warn,
            "raise the memory limit of the container or of the batch job (or `ulimit -v`)",
        )
        .limited_by(format!("{} are wanted", size(SMALLEST_LIMIT_BYTES)))
}

fn dev_shm_bytes() -> Option<u64> {
    statvfs("/dev/shm")
        .ok()
        .map(|facts| facts.blocks() * facts.fragment_size())
}

/// Reserves more than the containers' default in /dev/shm, in a file without a name.
fn reserve_shared() -> io::Result<()> {
    let bytes = CONTAINER_DEFAULT_BYTES + (1 << 20);
    let file = region_file::create_in(Path::new("/dev/shm"), bytes)?;
    region_file::reserve(file.as_fd(), 0, bytes)
}

/// `tried` is none where there is too little memory to try with.
fn dev_shm(bytes: Option<u64>, tried: Option<io::Result<()>>) -> Check {
    let why = "Weft does not use it, but the MPIs' own shared memory does (--transport native, \
               windows), and dies of SIGBUS when it is full";
    let wanted = size(CONTAINER_DEFAULT_BYTES + (1 << 20));
    let whole = bytes.map_or_else(
        || "not mounted".to_owned(),
        |bytes| format!("of {}", size(bytes)),
    );
    let check = |value| Check::ok("/dev/shm", value, why);
    let fix = "start the container with a larger one, for example docker run --shm-size=4g";
    match tried {
        Some(Ok(())) => check(format!("{wanted} {whole} reserved")),
        Some(Err(error)) => check(format!("{wanted} {whole} cannot be had: {error}"))
            .but(Status::Warn, fix)
            .limited_by(format!(
                "more than {} are wanted",
                size(CONTAINER_DEFAULT_BYTES)
            )),
        // Too small, whatever the memory.
        None if bytes.is_none_or(|bytes| bytes <= CONTAINER_DEFAULT_BYTES) => {
            check(whole).but(Status::Warn, fix).limited_by(format!(
                "more than {} are wanted",
                size(CONTAINER_DEFAULT_BYTES)
            ))
        }
        None => check(format!("too little memory to reserve {wanted} {whole}"))
            .not_tried("give this control group more memory"),
    }
}

/// The limit in force; `None` for unlimited.
fn soft(resource: Resource) -> Option<u64> {
    getrlimit(resource)
        .ok()
        .map(|(soft, _)| soft)
        .filter(|&soft| soft != nix::sys::resource::RLIM_INFINITY)
}

/// Opens files until there are as many as are wanted, or it is refused.
fn open_many() -> usize {
    let opened = (0..FILES_WANTED).map_while(|_| File::open("/dev/null").ok());
    opened.collect::<Vec<_>>().len()
}

fn files(opened: usize, limit: Option<u64>) -> Check {
    let limit = limit.map_or_else(|| "unlimited".to_owned(), |count| count.to_string());
    let why = "each remote process on this machine that a rank talks to takes an open file or two";
    Check::ok("open files", format!("{opened} more opened at once"), why)
        .but_if(
            opened < FILES_WANTED,
            Status::Warn,
            "ulimit -n 4096 (the machine's own limit is fs.file-max)",
        )
        .limited_by(format!("{FILES_WANTED} are wanted; `ulimit -n` is {limit}"))
}

/// What a rank maps of the region of each other one.
const EACH_BYTES: usize = SHARED_BYTES + LANE_BYTES;

/// Maps a region as a rank does its own, then parts of it as it does those of others; answers how
/// often that went well.
fn map_many() -> io::Result<usize> {
    let length = REGION_BYTES as u64;
    let file = region_file::create_memfd("weft-doctor", length)
        .or_else(|_| region_file::create_in(Path::new("/dev/shm"), length))?;
    let Ok(_own) = Mapping::shared(file.as_fd(), REGION_BYTES) else {
        return Ok(0);
    };
    let mapped = (0..REGIONS_WANTED).map_while(|_| Mapping::shared(file.as_fd(), EACH_BYTES).ok());
    Ok(mapped.collect::<Vec<_>>().len())
}

fn address_space(tried: io::Result<usize>) -> Check {
    let limit = soft(Resource::RLIMIT_AS).map_or_else(|| "unlimited".to_owned(), size);
    let each = size(EACH_BYTES as u64);
    let own = size(REGION_BYTES as u64);
    let why = "regions are mapped at their full length though only the pages in use take memory, \
               so a limit on addresses is met long before one on memory";
    let fix = "ulimit -v unlimited; limit memory with a control group instead";
    let check = match tried {
        Ok(count) => Check::ok(
            "address space",
            format!("a region of {own} and {count} parts of {each} mapped at once"),
            why,
        )
        .but_if(count < REGIONS_WANTED, Status::Warn, fix)
        .but_if(count == 0, Status::Fail, fix),
        Err(error) => Check::ok(
            "address space",
            format!("a file of {own} cannot be made: {error}"),
            why,
        )
        .but(Status::Fail, "ulimit -f unlimited; ulimit -v unlimited"),
    };
    check.limited_by(format!(
        "{REGIONS_WANTED} are wanted for {REGIONS_WANTED} ranks; `ulimit -v` is {limit}{}",
        weft_os::limits::file_bytes().map_or_else(String::new, |bytes| format!(
            ", `ulimit -f` is {}",
            size(bytes)
        ))
    ))
}

/// Bytes that came in large pages, of shared memory that was mapped and written.
fn map_large(tree: &Tree) -> io::Result<u64> {
    let large = || {
        let text = tree.field("/proc/self/smaps_rollup", "ShmemPmdMapped")?;
        text.strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    let file = region_file::create_memfd("weft-doctor", LARGE_BYTES as u64)?;
    let mapping = Mapping::shared(file.as_fd(), LARGE_BYTES)?;
    let unread = || io::Error::other("/proc/self/smaps_rollup cannot be read");
    let before = large().ok_or_else(unread)?;
    mapping.populate(0, LARGE_BYTES);
    let after = large().ok_or_else(unread)?;
    Ok(after.saturating_sub(before) * 1024)
}

/// Small pages are no fault: they cost at first use only.
fn large_pages(tried: io::Result<u64>, setting: Option<&str>) -> Check {
    let chosen = setting.and_then(|text| text.split('[').nth(1)?.split(']').next());
    let setting = chosen.map_or_else(
        || "this kernel offers none".to_owned(),
        |chosen| format!("transparent_hugepage/shmem_enabled is {chosen}"),
    );
    let why = "shared regions in large pages take fewer page faults at first use";
    match tried {
        Ok(0) => Check::ok(
            "large shared pages",
            format!("shared memory comes in small pages ({setting})"),
            why,
        ),
        Ok(bytes) => Check::ok(
            "large shared pages",
            format!("{} of {} came so", size(bytes), size(LARGE_BYTES as u64)),
            why,
        ),
        Err(error) => Check::ok("large shared pages", error.to_string(), why)
            .not_tried("mount /proc, and allow memfd_create"),
    }
}

/// What may be locked, for `weft info`: Weft locks none, but other providers do.
#[must_use]
pub fn locked() -> String {
    soft(Resource::RLIMIT_MEMLOCK).map_or_else(|| "unlimited".to_owned(), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(limit: Option<u64>, total: u64, available: u64) -> Room {
        Room {
            limit,
            total: Some(total),
            available: Some(available),
        }
    }

    #[test]
    fn memory_is_judged_by_what_could_be_taken_and_the_least_limit() {
        let gib = 1 << 30;
        let good = memory(of(None, 8 * gib, 4 * gib), TOUCHED_BYTES);
        assert_eq!(good.status, Status::Ok);
        assert_eq!(good.value, "64.0 MiB taken and written, of 8.0 GiB");
        let grouped = memory(of(Some(100 << 20), 8 * gib, 4 * gib), 0);
        grouped.assert_wrong(Status::Warn, "raise the memory limit");
        assert!(
            grouped.value.contains("100.0 MiB left, so none was taken")
                && grouped
                    .value
                    .contains("(control group; the machine has 8.0 GiB)"),
            "{grouped:?}"
        );
        assert!(grouped.limit.contains("256.0 MiB"), "{grouped:?}");
        let full = memory(of(None, 8 * gib, 100 << 20), 0);
        full.assert_wrong(Status::Warn, "raise the memory limit");
        let refused = memory(of(None, 8 * gib, 4 * gib), 0);
        refused.assert_wrong(Status::Warn, "`ulimit -v`");
        assert!(
            refused.value.contains("64.0 MiB were refused"),
            "{refused:?}"
        );
        assert_eq!(memory(Room::default(), TOUCHED_BYTES).status, Status::Ok);
    }

    #[test]
    fn the_container_default_of_dev_shm_is_a_warning() {
        let full = || Some(Err(io::Error::other("No space left on device")));
        let small = dev_shm(Some(64 << 20), full());
        assert!(small.limit.contains("64.0 MiB"), "{small:?}");
        for check in [small, dev_shm(None, full())] {
            check.assert_wrong(Status::Warn, "--shm-size=4g");
        }
        assert_eq!(dev_shm(Some(1 << 30), Some(Ok(()))).status, Status::Ok);
        // Without memory to try with, the size alone can tell that it is too small, and no more.
        assert_eq!(dev_shm(Some(64 << 20), None).status, Status::Warn);
        assert_eq!(dev_shm(Some(1 << 30), None).status, Status::NotTried);
    }

    #[test]
    fn files_and_addresses_are_judged_by_how_many_could_be_had() {
        let few = files(55, Some(64));
        few.assert_wrong(Status::Warn, "ulimit -n 4096");
        assert!(few.limit.contains("`ulimit -n` is 64"), "{few:?}");
        assert_eq!(files(FILES_WANTED, None).status, Status::Ok);
        assert_eq!(address_space(Ok(8)).status, Status::Ok);
        for (count, status) in [(3, Status::Warn), (0, Status::Fail)] {
            address_space(Ok(count)).assert_wrong(status, "ulimit -v unlimited");
        }
        let refused = address_space(Err(io::Error::other("File too large")));
        refused.assert_wrong(Status::Fail, "ulimit -f unlimited");
    }

    #[test]
    fn large_pages_are_judged_by_what_came() {
        let setting = Some("always within_size advise [never] deny force");
        let small = large_pages(Ok(0), setting);
        assert_eq!(small.status, Status::Ok);
        assert!(small.value.contains("shmem_enabled is never"), "{small:?}");
        let large = large_pages(Ok(4 << 20), setting);
        assert!(large.value.contains("4.0 MiB of 4.0 MiB"), "{large:?}");
        let unread = large_pages(Err(io::Error::other("no /proc")), None);
        assert_eq!(unread.status, Status::NotTried);
    }

    #[test]
    fn refused_anonymous_files_are_a_warning_while_dev_shm_can_replace_them() {
        let check = refused_file("Operation not permitted", Ok(()));
        check.assert_wrong(Status::Warn, "FI_WEFT_REGION_DIR");
        let check = refused_file("Operation not permitted", Err("full".to_owned()));
        check.assert_wrong(Status::Fail, "FI_WEFT_REGION_DIR");
        assert!(check.value.ends_with("/dev/shm: full"), "{check:?}");
    }

    #[test]
    fn an_anonymous_file_that_others_can_shorten_is_a_failure() {
        assert_eq!(judge_file(Ok(false)).status, Status::Ok);
        judge_file(Ok(true)).assert_wrong(Status::Fail, "F_ADD_SEALS");
    }

    #[test]
    fn everything_can_be_had_where_these_tests_run() {
        assert_eq!(shared_file().status, Status::Ok);
        assert_eq!(take_memory(), TOUCHED_BYTES);
        assert!(open_many() > 0);
        assert!(map_many().unwrap() > 0);
        map_large(&Tree::of_this_machine()).unwrap();
    }
}
