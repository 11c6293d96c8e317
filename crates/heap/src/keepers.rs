// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether something may keep physical pages of this process, and go on with the old ones when
//! others come in their place: devices, and parts of the kernel that the process has open. Asked by
//! eligible. Sources: proc_pid_status(5), proc_pid_fd(5).
//!
//! To list descriptors in /proc costs some microseconds for each. So each number is looked at
//! instead, until all that are open were found, and the name is read only of what may be such a
//! thing: of no file, pipe, socket or terminal (docs/lab/2026-11-30-sharing-within-the-warm-up.md).

use std::ffi::{CStr, c_int};
use std::fs;
use std::io::Write;
use std::path::Path;

use crate::process;

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

/// Room for what the system says. Chosen: it is 1.5 KB, and names of many processors more.
const STATUS_BYTES: usize = 8 << 10;

impl Status {
    /// That of now; `None` if it cannot be read.
    pub fn read() -> Option<Self> {
        let mut text = [0; STATUS_BYTES];
        let text = process::read(c"/proc/self/status", &mut text);
        (!text.is_empty()).then(|| Self::parse(text))
    }

    fn parse(text: &[u8]) -> Self {
        let find = |name: &[u8]| {
            let mut lines = text.split(|&byte| byte == b'\n');
            let value = lines.find_map(|line| line.strip_prefix(name))?;
            Some(value.trim_ascii())
        };
        let number = |name| str::from_utf8(find(name)?).ok()?.parse::<c_int>().ok();
        Self {
            is_pinned: find(b"VmPin:").is_some_and(|size| size != b"0 kB"),
            threads: number(b"Threads:").map_or(0, |count| count as usize),
            numbers: number(b"FDSize:"),
        }
    }

    /// Whether something may keep physical pages.
    pub fn has_keepers(&self) -> bool {
        self.is_pinned
            || match self.numbers.filter(|&numbers| numbers <= MOST_NUMBERS) {
                Some(numbers) => is_any_keeper_below(numbers, open_descriptors()),
                None => is_any_listed_keeper(),
            }
    }
}

/// How many descriptors are open, if the system says so (Linux 6.2).
fn open_descriptors() -> Option<usize> {
    let status = fs::metadata("/proc/self/fd").ok()?;
    usize::try_from(status.len())
        .ok()
        .filter(|&count| count > 0)
}

/// Whether a descriptor below `numbers` is a keeper. So many are open, if that is known: no number
/// behind the last of them is looked at. Of what another thread opens or closes meanwhile nothing
/// can be known in any way.
fn is_any_keeper_below(numbers: c_int, open: Option<usize>) -> bool {
    let mut left = open.unwrap_or(usize::MAX);
    for descriptor in 0..numbers {
        if left == 0 {
            return false;
        }
        if let Some(status) = process::status_of(descriptor) {
            left -= 1;
            if may_keep(&status) && is_keeper(descriptor) {
                return true;
            }
        }
    }
    false
}

/// Devices that keep nothing, by their major numbers: memory, as /dev/null is, and terminals.
/// Specified: Documentation/admin-guide/devices.txt.
const HARMLESS_DEVICES: [std::ops::RangeInclusive<u32>; 3] = [1..=1, 4..=5, 136..=143];

/// Whether what a descriptor names is no file, folder, pipe, socket or harmless device: another
/// device, or something of the kernel's without a kind.
fn may_keep(status: &libc::stat) -> bool {
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFIFO | libc::S_IFSOCK => false,
        libc::S_IFCHR => {
            let major = libc::major(status.st_rdev);
            !HARMLESS_DEVICES
                .iter()
                .any(|majors| majors.contains(&major))
        }
        _ => true,
    }
}

/// Longest link that is read. Chosen: what keeps pages has a shorter one.
const LINK_BYTES: usize = 64;

fn is_keeper(descriptor: c_int) -> bool {
    let (mut name, mut link) = ([0; 32], [0; LINK_BYTES]);
    // The number has eleven characters at most, and the last byte stays zero.
    let written = write!(&mut name[..31], "/proc/self/fd/{descriptor}");
    let name = CStr::from_bytes_until_nul(&name).ok();
    match name.filter(|_| written.is_ok()) {
        Some(name) => names_keeper(process::link(name, &mut link)),
        None => true,
    }
}

fn names_keeper(link: &[u8]) -> bool {
    KEEPERS
        .iter()
        .any(|keeper| link.starts_with(keeper.as_bytes()))
}

fn is_any_listed_keeper() -> bool {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else {
        return true;
    };
    let link = |path: &Path| fs::read_link(path).unwrap_or_default();
    descriptors
        .flatten()
        .any(|entry| names_keeper(link(&entry.path()).as_os_str().as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    fn may_be_keeper(descriptor: c_int) -> bool {
        process::status_of(descriptor).is_some_and(|status| may_keep(&status))
    }

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
            Some(one) => {
                assert!(may_be_keeper(one) && is_keeper(one));
                let open = open_descriptors();
                assert!(is_any_keeper_below(MOST_NUMBERS, open), "{open:?} are open");
                assert!(is_any_keeper_below(MOST_NUMBERS, None) && is_any_listed_keeper());
            }
            None => println!("skip: no userfaultfd here"),
        }
        drop(keeper);
        // SAFETY: as above.
        let events = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }.into());
        let events = events.expect("eventfd(2)");
        let device = fs::File::open("/dev/null").expect("a device");
        let (reader, _writer) = std::io::pipe().expect("pipe(2)");
        let file = fs::File::open("/proc/self/maps").expect("/proc");
        assert!(may_be_keeper(events.as_raw_fd()) && !is_keeper(events.as_raw_fd()));
        for plain in [&device, &file].map(AsRawFd::as_raw_fd) {
            assert!(!may_be_keeper(plain));
        }
        assert!(!may_be_keeper(reader.as_raw_fd()) && !may_be_keeper(c_int::MAX));
    }

    #[test]
    fn the_status_of_a_process_says_what_it_has() {
        let said = b"Name:\ta\nFDSize:\t64\nVmPin:\t       4 kB\nThreads:\t3\n";
        let found = Status::parse(said);
        let expected = Status {
            is_pinned: true,
            threads: 3,
            numbers: Some(64),
        };
        assert_eq!(found, expected);
        let other = Status::parse(b"VmPin:\t       0 kB\n");
        assert_eq!(
            (other.is_pinned, other.threads, other.numbers),
            (false, 0, None)
        );
        let own = Status::read().expect("/proc");
        assert!(own.threads > 1 && own.numbers.is_some(), "{own:?}");
    }
}
