// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a thread of another process waits for a lock or a condition: it is inside futex(2), as
//! proc(5) tells under /proc/pid/task/tid/syscall. Used by launch for launchers that deadlocked.

use std::path::Path;

/// Whether the thread of this folder, /proc/pid/task/tid, is inside futex(2) now. False where the
/// thread is gone, or this process may not look (ptrace(2), PTRACE_MODE_ATTACH_FSCREDS).
#[must_use]
pub fn is_in_futex(thread_folder: &Path) -> bool {
    let text = std::fs::read_to_string(thread_folder.join("syscall")).unwrap_or_default();
    number_of_call(&text) == Some(libc::SYS_futex)
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
    }

    #[test]
    fn a_thread_that_is_gone_waits_for_nothing() {
        assert!(!is_in_futex(Path::new("/proc/self/task/0")));
    }
}
