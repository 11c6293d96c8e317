// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether something may keep physical pages of this process, and go on with the old ones when
//! others come in their place: devices, and parts of the kernel that the process has open. Asked by
//! eligible. Sources: proc_pid_status(5), proc_pid_fd(5).
//!
//! To list descriptors in /proc costs some microseconds for each. So each number is looked at
//! instead, and the name is read only of what may be such a thing: of no file, pipe or socket.

use std::ffi::c_int;
use std::fs;
use std::path::Path;

/// What keeps physical pages, by the beginning of what a descriptor's link says.
const KEEPERS: [&str; 10] = [
    "/dev/nvidia",
    "/dev/kfd",
    "/dev/dri",
    "/dev/infiniband",
    "/dev/vfio",
    "/dev/hfi1",
    "/dev/cxi",
    "/dev/kvm",
    "anon_inode:[io_uring]",
    "anon_inode:[userfaultfd]",
];

/// Most numbers of descriptors that are looked at one by one. Chosen: these take about a tenth of a
/// millisecond. Processes that have more are listed.
const MOST_NUMBERS: c_int = 1024;

/// What the system says of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Some pages are pinned.
    is_pinned: bool,
    /// Its threads; 0 if it is not said.
    pub threads: usize,
    /// All descriptors have lower numbers, if it is said.
    numbers: Option<c_int>,
}

impl Status {
    /// That of now; `None` if it cannot be read.
    pub fn read() -> Option<Self> {
        let text = fs::read("/proc/self/status").ok()?;
        Some(Self::parse(&String::from_utf8_lossy(&text)))
    }

    fn parse(text: &str) -> Self {
        let find = |name| text.lines().find_map(|line| line.strip_prefix(name));
        let number = |name| find(name)?.trim().parse::<c_int>().ok();
        Self {
            is_pinned: find("VmPin:").is_some_and(|size| size.trim() != "0 kB"),
            threads: number("Threads:").map_or(0, |count| count as usize),
            numbers: number("FDSize:"),
        }
    }

    /// Whether something may keep physical pages.
    pub fn has_keepers(&self) -> bool {
        self.is_pinned
            || match self.numbers.filter(|&numbers| numbers <= MOST_NUMBERS) {
                Some(numbers) => (0..numbers).any(|one| may_keep(one) && is_keeper(one)),
                None => is_any_listed_keeper(),
            }
    }
}

/// Whether a descriptor is open and names no file, folder, pipe or socket: a device, or something
/// of the kernel's without a kind.
fn may_keep(descriptor: c_int) -> bool {
    // SAFETY: stat is plain data, for which zero is valid, and ours to write.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &mut status) == 0).then_some(status)
    };
    const PLAIN: [u32; 4] = [libc::S_IFREG, libc::S_IFDIR, libc::S_IFIFO, libc::S_IFSOCK];
    status.is_some_and(|status| !PLAIN.contains(&(status.st_mode & libc::S_IFMT)))
}

fn is_keeper(descriptor: c_int) -> bool {
    names_keeper(format!("/proc/self/fd/{descriptor}").as_ref())
}

fn names_keeper(link: &Path) -> bool {
    let target = fs::read_link(link).unwrap_or_default();
    let target = target.to_string_lossy();
    KEEPERS.iter().any(|keeper| target.starts_with(keeper))
}

fn is_any_listed_keeper() -> bool {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else {
        return true;
    };
    descriptors
        .flatten()
        .any(|entry| names_keeper(&entry.path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// What the system answered with a descriptor; `None` if it refused.
    fn owned(answer: libc::c_long) -> Option<OwnedFd> {
        // SAFETY: a descriptor just made, which nobody else has.
        (answer >= 0).then(|| unsafe { OwnedFd::from_raw_fd(answer as c_int) })
    }

    #[test]
    fn a_userfaultfd_keeps_pages_and_files_pipes_and_events_do_not() {
        const USER_MODE_ONLY: c_int = 1;
        let flags = libc::O_CLOEXEC | USER_MODE_ONLY;
        // SAFETY: plain calls.
        let keeper = owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) });
        match keeper.as_ref().map(AsRawFd::as_raw_fd) {
            Some(one) => assert!(may_keep(one) && is_keeper(one)),
            None => println!("skip: no userfaultfd here"),
        }
        drop(keeper);
        // SAFETY: as above.
        let events = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }.into());
        let events = events.expect("eventfd(2)");
        let device = fs::File::open("/dev/null").expect("a device");
        let (reader, _writer) = std::io::pipe().expect("pipe(2)");
        let file = fs::File::open("/proc/self/maps").expect("/proc");
        for harmless in [events.as_raw_fd(), device.as_raw_fd()] {
            assert!(may_keep(harmless) && !is_keeper(harmless));
        }
        for plain in [reader.as_raw_fd(), file.as_raw_fd(), c_int::MAX] {
            assert!(!may_keep(plain));
        }
    }

    #[test]
    fn the_status_of_a_process_says_what_it_has() {
        let said = "Name:\ta\nFDSize:\t64\nVmPin:\t       4 kB\nThreads:\t3\n";
        let found = Status::parse(said);
        let expected = Status {
            is_pinned: true,
            threads: 3,
            numbers: Some(64),
        };
        assert_eq!(found, expected);
        let other = Status::parse("VmPin:\t       0 kB\n");
        assert_eq!(
            (other.is_pinned, other.threads, other.numbers),
            (false, 0, None)
        );
        let own = Status::read().expect("/proc");
        assert!(own.threads > 1 && own.numbers.is_some(), "{own:?}");
    }
}
