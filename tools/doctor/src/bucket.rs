// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether jobs can mount buckets here (`--mount`), and whether a mount of a dead process is in the
//! way.
//!
//! Called by `lib.rs`. Source: fuse(4); proc(5), `mountinfo`; ENOTCONN is what a folder answers
//! whose process has ended. No store is asked: which one a job names, the doctor does not know.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

use crate::check::{Check, Status, shell_word};
use crate::tree::Tree;

const WHY: &str = "weft run --mount shows the ranks a bucket by it";
/// What the source of a mount of `weft-mount` begins with.
const SOURCE: &str = "weft:";

/// Both checks.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    let opened = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    let opened = opened.map(drop).map_err(|error| error.kind());
    let mounted = places(&tree.text("/proc/self/mountinfo").unwrap_or_default());
    let is_dead = |place: &PathBuf| statvfs(place.as_path()) == Err(Errno::ENOTCONN);
    let dead: Vec<PathBuf> = mounted
        .iter()
        .filter(|place| is_dead(place))
        .cloned()
        .collect();
    vec![
        device(opened, program().as_deref(), &settings(tree)),
        dead_mounts(mounted.len(), &dead),
    ]
}

/// How to get `weft-mount`.
pub(crate) const HOW_TO_INSTALL: &str =
    "install the package weft-mount, or call make build-mount and install it beside weft";

/// `weft-mount`, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    let program = weft_launch::mounts::program();
    if program.is_absolute() {
        return Some(program);
    }
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|folder| folder.join(&program));
    all.find(|path| path.is_file())
}

/// What the kernel lets a request of FUSE carry, where it says so.
fn settings(tree: &Tree) -> String {
    let pages = tree.number("/proc/sys/fs/fuse/max_pages_limit");
    pages.map_or(String::new(), |pages| {
        format!(", requests of up to {} KiB", pages * 4)
    })
}

fn device(opened: Result<(), ErrorKind>, program: Option<&Path>, settings: &str) -> Check {
    let name = "buckets";
    let Some(program) = program else {
        let check = Check::ok(name, "weft-mount is not installed here", WHY);
        return check.not_tried(HOW_TO_INSTALL);
    };
    let shown = program.display();
    let fix = match opened {
        Ok(()) => {
            let value = format!("/dev/fuse was opened{settings}; {shown}");
            return Check::ok(name, value, WHY);
        }
        Err(ErrorKind::NotFound) => {
            "modprobe fuse; a container needs the device (--device /dev/fuse)"
        }
        Err(ErrorKind::PermissionDenied) => "as root: chmod 666 /dev/fuse",
        Err(_) => "look whether the kernel has FUSE (CONFIG_FUSE_FS)",
    };
    let why_not = opened
        .err()
        .map(|kind| kind.to_string())
        .unwrap_or_default();
    Check::ok(name, format!("/dev/fuse cannot be opened: {why_not}"), WHY).but(Status::Warn, fix)
}

fn dead_mounts(count: usize, dead: &[PathBuf]) -> Check {
    let why = "programs that come to such a folder fail with ENOTCONN";
    let Some(first) = dead.first() else {
        return Check::ok(
            "dead mounts",
            match count {
                0 => "no bucket is mounted here".to_owned(),
                _ => format!("none of the {count} buckets mounted here is dead"),
            },
            why,
        );
    };
    let value = format!("{} of {count}, first {}", dead.len(), first.display());
    let fix = format!("umount {}", shell_word(first));
    Check::ok("dead mounts", value, why).but(Status::Warn, fix)
}

/// Where buckets are mounted, in the text of mountinfo.
fn places(table: &str) -> Vec<PathBuf> {
    let place = |line: &str| {
        let (place, origin) = line.split_once(" - ")?;
        let is_ours = origin.split(' ').nth(1)?.starts_with(SOURCE);
        let folder = place.split(' ').nth(4)?.replace("\\040", " ");
        is_ours.then(|| PathBuf::from(folder))
    };
    table.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_missed_only_by_who_can_mount() {
        let program = Some(Path::new("/opt/bin/weft-mount"));
        let denied = Err(ErrorKind::PermissionDenied);
        assert_eq!(device(denied, None, "").status, Status::NotTried);
        assert_eq!(device(Ok(()), program, "").status, Status::Ok);
        let check = device(denied, program, "");
        check.assert_wrong(Status::Warn, "chmod 666 /dev/fuse");
        for (kind, remedy) in [
            (ErrorKind::NotFound, "modprobe fuse"),
            (ErrorKind::Other, "CONFIG_FUSE_FS"),
        ] {
            device(Err(kind), program, "").assert_wrong(Status::Warn, remedy);
        }
    }

    #[test]
    fn dead_mounts_are_named_with_the_remedy() {
        let table = "65 43 0:39 / /a\\040b rw - fuse weft:data/ rw\n\
                     66 43 0:40 / /proc rw - proc proc rw\n";
        let found = places(table);
        assert_eq!(found, [PathBuf::from("/a b")]);
        assert_eq!(dead_mounts(1, &[]).status, Status::Ok);
        let check = dead_mounts(1, &found);
        check.assert_wrong(Status::Warn, "umount '/a b'");
    }
}
