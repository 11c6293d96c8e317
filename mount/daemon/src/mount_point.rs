// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks whether the folder can be mounted on, and whether FUSE can be used. Removes what a killed
//! mount of ours left there.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::statvfs::statvfs;

use crate::log;
use crate::mount_error::MountError;

/// What the source of each mount of this program begins with, in proc(5)'s mountinfo.
pub const SOURCE: &str = "weft:";

/// The folder's whole path, if it can be mounted on.
///
/// # Errors
/// What keeps it from that.
pub fn check(folder: &Path) -> Result<PathBuf, MountError> {
    let place = |cause: String| MountError::Place {
        folder: folder.to_owned(),
        cause,
    };
    clear_dead(folder)?;
    let path = folder.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => place("it is not there. Make it: mkdir -p".to_owned()),
        _ => place(format!("{error}")),
    })?;
    if !path.is_dir() {
        return Err(place("it is no folder".to_owned()));
    }
    if is_ours(&path) {
        return Err(place(format!(
            "a bucket is mounted there already. Unmount it first: umount {}",
            path.display()
        )));
    }
    let mut entries = fs::read_dir(&path).map_err(|error| place(format!("{error}")))?;
    if let Some(Ok(entry)) = entries.next() {
        return Err(place(format!(
            "it has something in it (`{}`), which the mount would hide. Give an empty folder",
            entry.file_name().to_string_lossy()
        )));
    }
    Ok(path)
}

/// Whether a folder is `above`, or in it, as far as folders are there; also through symbolic links
/// and bind mounts.
pub fn is_in(folder: &Path, above: &Path) -> bool {
    let (folder, above) = (resolved(folder), resolved(above));
    let place = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|found| (found.dev(), found.ino()))
    };
    let place_above = place(&above);
    let mut ancestors = folder.ancestors();
    ancestors.any(|path| path == above || (place_above.is_some() && place(path) == place_above))
}

/// A folder's whole path without symbolic links, as far as it is there and can be followed.
fn resolved(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut found = whole.ancestors().filter_map(|above| {
        let rest = whole.strip_prefix(above).ok()?;
        Some((above.canonicalize().ok()?, rest))
    });
    let Some((mut path, rest)) = found.next() else {
        return whole;
    };
    let mut goes_up = false;
    for part in rest.components() {
        if part == Component::ParentDir {
            goes_up = true;
            path.pop();
        } else {
            path.push(part);
        }
    }
    // Behind a folder that is not there yet the path may lead back to what is there.
    if goes_up { resolved(&path) } else { path }
}

/// Whether the kernel's side is there and may be used.
///
/// # Errors
/// What is missing.
pub fn check_fuse() -> Result<(), MountError> {
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse");
    let remedy = match opened.as_ref().map_err(std::io::Error::kind) {
        Ok(_) => return Ok(()),
        Err(ErrorKind::NotFound) => {
            "Load the kernel's module (modprobe fuse); give a container the device (--device \
             /dev/fuse)."
        }
        Err(ErrorKind::PermissionDenied) => {
            "Mount as root, or let users have the device: chmod 666 /dev/fuse."
        }
        Err(_) => "Look whether the kernel has FUSE (CONFIG_FUSE_FS).",
    };
    let error = opened.expect_err("it was not opened");
    Err(MountError::Fuse(format!(
        "cannot use /dev/fuse: {error}. {remedy}"
    )))
}

/// A mount whose process was killed answers nothing but ENOTCONN until it is taken away.
fn clear_dead(folder: &Path) -> Result<(), MountError> {
    // What stat(2) shows may be the kernel's memory of it; this is asked anew each time.
    if statvfs(folder) != Err(Errno::ENOTCONN) {
        return Ok(());
    }
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if !is_ours(&path) {
        return Err(MountError::Place {
            folder: folder.to_owned(),
            cause: format!(
                "a dead mount of another program is there. Unmount it first: umount -l {}",
                path.display()
            ),
        });
    }
    umount2(&path, MntFlags::MNT_DETACH).map_err(|error| MountError::Place {
        folder: folder.to_owned(),
        cause: format!(
            "the mount there is dead, its process was killed, and it cannot be removed: \
             {error}. As root: umount -l {}",
            path.display()
        ),
    })?;
    log::tell(&format!(
        "removed the dead mount on {}, whose process was killed",
        path.display()
    ));
    Ok(())
}

fn is_ours(path: &Path) -> bool {
    source_at(path).is_some_and(|source| source.starts_with(SOURCE))
}

/// The source of the last mount on a folder, from proc(5)'s mountinfo.
fn source_at(path: &Path) -> Option<String> {
    // Other mounts' folders need not be UTF-8.
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let table = String::from_utf8_lossy(&table);
    let path = path.to_str()?;
    let mut sources = table.lines().rev().filter_map(|line| {
        let (mount, origin) = line.split_once(" - ")?;
        (unescape(mount.split(' ').nth(4)?) == path).then(|| origin.split(' ').nth(1))?
    });
    sources.next().map(unescape)
}

/// The kernel writes blanks, tabs, line ends and backslashes as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let pairs = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Lets the kernel read so many bytes ahead; only root may.
pub fn raise_read_ahead(folder: &Path, bytes: u32) {
    let Ok(metadata) = fs::metadata(folder) else {
        return;
    };
    let device = metadata.dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    // Without it reads are 128 KiB each: slower, and right.
    let _ = fs::write(
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        (bytes >> 10).to_string(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_path() {
        assert_eq!(source_at(Path::new("/proc")).as_deref(), Some("proc"));
        assert_eq!(source_at(Path::new("/proc/self")), None);
        assert!(!is_ours(Path::new("/proc")));
        assert_eq!(unescape("/a\\040b\\134c"), "/a b\\c");
    }

    #[test]
    fn folders_are_resolved_as_far_as_they_are_there() {
        let place = format!("weft-mount-test-{}", std::process::id());
        let place = std::env::temp_dir().join(place);
        fs::create_dir(&place).unwrap();
        let (real, link) = (
            place.canonicalize().unwrap().join("real"),
            place.join("link"),
        );
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(resolved(&link.join("a/b")), real.join("a/b"));
        assert_eq!(resolved(&link.join("../c")), real.with_file_name("c"));
        let missing = place.join("missing");
        assert_eq!(resolved(&missing.join("../link/a")), real.join("a"));
        assert_eq!(resolved(&missing.join("b/../../link/../c")), {
            let link = place.join("link/../c");
            resolved(&link)
        });
        assert_eq!(resolved(Path::new("/no/such")), Path::new("/no/such"));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn folder_with_something_in_it_and_what_is_no_folder_are_refused() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(
            check(here)
                .unwrap_err()
                .to_string()
                .contains("empty folder")
        );
        let file = check(&here.join("Cargo.toml")).unwrap_err();
        assert!(file.to_string().contains("no folder"));
        let missing = check(&here.join("missing")).unwrap_err();
        assert!(missing.to_string().contains("mkdir -p"));
    }
}
