// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the heap of `weft run` serves here, tried as ranks would: a program with libweft-heap.so
//! preloaded, and its heap opened by another process.
//!
//! Called by `lib.rs` and `info.rs`. The program is cat(1), which is ready once it has given a line
//! back. Source: ld.so(8), proc_pid_fd(5).

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use weft_launch::{heap, provider};

use crate::check::{Check, Status};

const NAME: &str = "shared heap";
const WHY: &str = "buffers that ranks send again and again become memory that receivers copy \
                   straight out of, once, without a system call; without that messages are copied \
                   twice, or by the kernel";

/// The check.
#[must_use]
pub fn check() -> Check {
    let folder = provider::find_for_this_process().ok();
    check_in(folder.map(|folder| folder.join(heap::FILE_NAME)))
}

fn check_in(library: Option<PathBuf>) -> Check {
    match library {
        Some(library) if library.is_file() => judge(attempt(&library)),
        _ => Check::ok(
            NAME,
            format!(
                "not installed: there is no {} beside the provider",
                heap::FILE_NAME
            ),
            WHY,
        )
        .not_tried("install it: make build puts it beside the provider"),
    }
}

fn judge(attempt: io::Result<()>) -> Check {
    match attempt {
        Ok(()) => Check::ok(
            NAME,
            "another process opened the heap that a preloaded program shares",
            WHY,
        ),
        Err(why) => Check::ok(NAME, why.to_string(), WHY).but(
            Status::Warn,
            "weft run --heap private does without; or see what hinders: the loader's message \
             above, memfd_create(2) refused by a seccomp filter, /proc mounted with hidepid, ranks \
             in different containers",
        ),
    }
}

fn attempt(library: &Path) -> io::Result<()> {
    let mut program = Command::new("cat")
        .env("LD_PRELOAD", library)
        .env("WEFT_HEAP", "at-load")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let opened = look(&mut program);
    drop(program.stdin.take());
    let mut said = String::new();
    if let Some(errors) = &mut program.stderr {
        errors.read_to_string(&mut said)?;
    }
    program.wait()?;
    match said.lines().next() {
        Some(line) => Err(io::Error::other(line.to_owned())),
        None => opened,
    }
}

/// Opens the heap of a running program.
fn look(program: &mut Child) -> io::Result<()> {
    let gone = || io::Error::other("the preloaded program ended at once");
    program
        .stdin
        .as_mut()
        .ok_or_else(gone)?
        .write_all(b"ready\n")?;
    let mut line = String::new();
    BufReader::new(program.stdout.as_mut().ok_or_else(gone)?).read_line(&mut line)?;
    if line.is_empty() {
        return Err(gone());
    }
    let folder = format!("/proc/{}/fd", program.id());
    for entry in fs::read_dir(&folder)?.flatten() {
        let target = fs::read_link(entry.path())?;
        if target.to_string_lossy().starts_with("/memfd:weft-heap") {
            return File::open(entry.path()).map(drop);
        }
    }
    Err(io::Error::other(format!("{folder} shows no heap")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_preloaded_is_named_with_what_the_loader_says() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(heap::FILE_NAME);
        fs::write(&library, "no library").unwrap();
        let check = judge(attempt(&library));
        check.assert_wrong(Status::Warn, "--heap private");
        assert!(check.value.contains(heap::FILE_NAME), "{}", check.value);
    }

    #[test]
    fn a_library_that_is_not_installed_is_not_tried() {
        for library in [None, Some(PathBuf::from("/no/such/library.so"))] {
            let check = check_in(library);
            assert_eq!(check.status, Status::NotTried);
            assert!(check.how.contains("make build"), "{check:?}");
        }
    }

    #[test]
    fn a_program_without_the_library_has_no_heap() {
        let text = attempt(Path::new("")).unwrap_err().to_string();
        assert!(text.contains("shows no heap"), "{text}");
    }
}
