// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a thread of another process waits for, by the system call that it is inside of, as proc(5)
//! tells under /proc/pid/task/tid/syscall. Used by launch for launchers and ranks that are stuck.

use std::path::Path;

/// Whether the thread of this folder, /proc/pid/task/tid, is inside futex(2) now: it waits for a
/// lock or a condition. False where the thread is gone, or this process may not look (ptrace(2),
/// PTRACE_MODE_ATTACH_FSCREDS).
#[must_use]
pub fn is_in_futex(thread_folder: &Path) -> bool {
    let text = std::fs::read_to_string(thread_folder.join("syscall")).unwrap_or_default();
    number_of_call(&text) == Some(libc::SYS_futex)
}

/// The descriptor from which the thread of this folder reads now (read(2)). `None` where it does
/// something else, is gone, or this process may not look.
#[must_use]
pub fn read_descriptor(thread_folder: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(thread_folder.join("syscall")).ok()?;
    descriptor_of_read(&text)
}

fn descriptor_of_read(text: &str) -> Option<u64> {
    let first = text.split_whitespace().nth(1)?.strip_prefix("0x")?;
    let descriptor = u64::from_str_radix(first, 16).ok()?;
    (number_of_call(text) == Some(libc::SYS_read)).then_some(descriptor)
}

/// The number of the system call in which a thread is, -1 if in none; `None` for "running".
fn number_of_call(text: &str) -> Option<libc::c_long> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let waiting = "202 0x55e8 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd5f98 0x7f36\n";
        assert_eq!(number_of_call(waiting), Some(202));
        assert_eq!(number_of_call("running\n"), None);
        assert_eq!(number_of_call("-1 0x7ffd5f98 0x7f36\n"), Some(-1));
        assert_eq!(descriptor_of_read(waiting), None);
        let reads = format!("{} 0x1f 0x7ffd5f98 0x400 0x0\n", libc::SYS_read);
        assert_eq!(descriptor_of_read(&reads), Some(31));
        assert_eq!(descriptor_of_read("running\n"), None);
    }

    #[test]
    fn a_thread_that_is_gone_waits_for_nothing() {
        assert!(!is_in_futex(Path::new("/proc/self/task/0")));
        assert_eq!(read_descriptor(Path::new("/proc/self/task/0")), None);
    }
}
