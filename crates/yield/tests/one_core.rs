// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two threads that hand a turn to each other on one core, waiting with our sched_yield: the real
//! kernel's count shows that they share it, and each gets its turns.

use std::sync::atomic::{AtomicU32, Ordering};

/// Binds the calling thread to the first core that it may use.
fn bind_to_one_core() {
    // SAFETY: plain data, ours to write, of the size that is said.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &mut allowed), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(first.expect("a core"), &mut one);
        assert_eq!(libc::sched_setaffinity(0, size, &one), 0);
    }
}

#[test]
fn two_threads_on_one_core_get_their_turns() {
    const TURNS: u32 = 4_000;
    let turn = AtomicU32::new(0);
    let take_turns = |own: u32| {
        bind_to_one_core();
        let before = weft_yield::kernel::times_taken_off();
        loop {
            match turn.load(Ordering::Acquire) {
                TURNS.. => break,
                now if now % 2 == own => turn.store(now + 1, Ordering::Release),
                _ => assert_eq!(weft_yield::sched_yield(), 0),
            }
        }
        weft_yield::kernel::times_taken_off() - before
    };
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|own| scope.spawn(move || take_turns(own)));
        for thread in threads {
            let taken_off = thread.join().expect("took its turns");
            assert!(taken_off >= u64::from(TURNS) / 2 - 1, "{taken_off}");
        }
    });
    assert_eq!(turn.load(Ordering::Relaxed), TURNS);
}
