// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Children of a process that shares memory. Each runs in a process of its own, preloaded.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::offering::*;

/// Runs `child` in a forked process; answers its exit code, -1 if it was killed.
pub fn forked(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only allocates and ends.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::_exit(child());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            -1
        }
    }
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_fork() {
    let bytes = 3 * MIB + 100;
    let (first, second) = (block(bytes, 1), mapped(bytes, 2));
    assert!(offer_some(first, bytes) && offer_some(second, bytes));
    let descriptor = face().descriptor as i32;
    let code = forked(|| {
        assert!(holds(first, bytes, 1) && holds(second, bytes, 2));
        // SAFETY: takes a plain number.
        assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_GETFD) }, -1);
        // SAFETY: the child's own memory.
        unsafe { fill(first, bytes, 9) };
        let inner = forked(|| i32::from(!holds(first, bytes, 9)));
        // SAFETY: the child's own copy of a block of malloc, which it frees once.
        unsafe { libc::free(first.cast()) };
        assert!(ask().is_some(), "it may share its own");
        assert!(offer_some(second, bytes) && is_right(second, bytes));
        40 + inner
    });
    assert_eq!(code, 40);
    assert!(holds(first, bytes, 1) && holds(second, bytes, 2));
    assert!(
        offer(first, bytes) && is_right(first, bytes),
        "it is shared as before"
    );
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_fork_large() {
    let (large, sent) = (256 * MIB, 2 * MIB);
    let (private, shared) = (block(large, 1), block(sent, 2));
    assert!(offer_some(shared, sent));
    let code = forked(|| {
        let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("smaps_rollup");
        let line = text.lines().find(|line| line.starts_with("Private_Dirty:"));
        let kib = line.and_then(|line| line.split_ascii_whitespace().nth(1));
        let kib: usize = kib.and_then(|kib| kib.parse().ok()).expect("a number");
        println!("{kib} KiB are the child's own");
        i32::from(kib * 1024 > 8 * MIB || !holds(shared, sent, 2))
    });
    assert_eq!(code, 0);
    assert!(holds(private, large, 1));
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_fork_threads() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for mark in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let address = block(MIB, mark);
                    offer_some(address, MIB);
                    assert!(holds(address, MIB, mark));
                    // SAFETY: a block of this thread's.
                    unsafe { libc::free(address.cast()) };
                }
            });
        }
        let own = mapped(MIB, 7);
        for _ in 0..20 {
            offer_some(own, MIB);
            let code = forked(|| {
                for mark in 0..20 {
                    let address = block(MIB, mark);
                    assert!(holds(address, MIB, mark));
                    // SAFETY: a block of the child's.
                    unsafe { libc::free(address.cast()) };
                }
                i32::from(!holds(own, MIB, 7))
            });
            if code != 0 {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(code, 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_exec() {
    let preloads = || {
        let said = Command::new("/bin/sh")
            .args([
                "-c",
                "echo \"<$LD_PRELOAD>\"; grep -c weft-heap /proc/self/maps",
            ])
            .output();
        String::from_utf8(said.expect("a shell").stdout).expect("text")
    };
    let before = preloads();
    assert!(
        before.contains("libweft-heap.so>"),
        "it may still become a rank: {before}"
    );
    assert!(ask().is_some());
    assert_eq!(preloads(), "<>\n0\n");
}
