// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The preloaded library as a program meets it: this test binary, started again with LD_PRELOAD, runs each `child_` test below, which
//! allocates through the C functions. Random ones take a seed, which is printed (WEFT_TEST_SEED repeats it).
// structure: allow file-length because all laws are run by one harness, in one binary that preloads itself

use std::ffi::c_void;
use std::path::PathBuf;
use std::process::{Command, Output};

const SEED_VARIABLE: &str = "WEFT_TEST_SEED";
const LIMIT_VARIABLE: &str = "WEFT_HEAP_LIMIT";
const LONG: usize = 16 << 10;
const MIB: usize = 1 << 20;

/// The library as cargo built it for this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let folder = own.parent().expect("deps");
    let places = [
        folder.to_owned(),
        folder.parent().expect("profile").to_owned(),
    ];
    let files = places.map(|place| place.join("libweft_heap.so"));
    files
        .into_iter()
        .find(|file| file.is_file())
        .expect("cargo built the library")
}

/// Runs one child test with the library preloaded.
fn preloaded(child: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command
        .args([
            child,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("LD_PRELOAD", library())
        .envs(variables.iter().copied());
    command.output().expect("the child starts")
}

fn passes(child: &str, variables: &[(&str, &str)]) {
    let output = preloaded(child, variables);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{child}: {}\n{out}\n{err}",
        output.status
    );
}

macro_rules! laws {
    ($($law:ident = $child:ident $(with $name:ident $value:literal)?;)*) => {
        $(#[test]
        fn $law() {
            passes(stringify!($child), &[$(($name, $value))?]);
        })*
    };
}

laws! {
    long_allocations_lie_in_the_heap_and_short_ones_do_not = child_lengths;
    calloc_is_zero_also_where_memory_was_used_before = child_zero;
    realloc_keeps_what_was_there_over_the_threshold_both_ways = child_realloc;
    every_alignment_is_kept = child_alignment;
    freed_memory_goes_back_to_the_system = child_returned;
    what_is_allocated_goes_into_core_files_and_the_rest_does_not = child_core;
    a_full_heap_falls_back_to_the_c_library = child_full with LIMIT_VARIABLE "4194304";
    impossible_sizes_are_refused_as_the_c_library_does = child_impossible;
    random_threads_never_see_each_others_bytes = child_threads;
    a_forked_child_has_memory_of_its_own = child_fork;
    a_fork_amid_allocating_threads_finds_a_sound_heap = child_fork_threads;
    an_executed_program_has_a_heap_of_its_own = child_exec;
}

/// What the library tells the provider: the descriptor, the base and the length.
fn heap() -> (i32, usize, usize) {
    type Ask = unsafe extern "C" fn(*mut u64, *mut u64) -> i32;
    let (mut base, mut length) = (0, 0);
    // SAFETY: the name is the library's own, of this type; both places are ours.
    let descriptor = unsafe {
        let ask = libc::dlsym(libc::RTLD_DEFAULT, c"weft_heap_v1".as_ptr());
        assert!(!ask.is_null(), "not preloaded");
        std::mem::transmute::<*mut c_void, Ask>(ask)(&mut base, &mut length)
    };
    (descriptor, base as usize, length as usize)
}

fn is_in_heap(address: *const c_void) -> bool {
    let (_, base, length) = heap();
    (address as usize).wrapping_sub(base) < length
}

/// An allocation filled with a pattern of its own, which is checked when it is freed.
struct Block {
    address: *mut u8,
    bytes: usize,
    mark: u8,
}

// SAFETY: plain memory.
unsafe impl Send for Block {}

impl Block {
    fn adopt(address: *mut c_void, bytes: usize, mark: u8) -> Self {
        assert!(!address.is_null());
        // SAFETY: fresh memory of that length.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), mark, bytes) };
        Self {
            address: address.cast(),
            bytes,
            mark,
        }
    }

    fn new(bytes: usize, mark: u8) -> Self {
        // SAFETY: plain allocation.
        Self::adopt(unsafe { libc::malloc(bytes) }, bytes, mark)
    }

    fn resized(mut self, bytes: usize, mark: u8) -> Self {
        self.check(self.bytes);
        // SAFETY: an allocation of ours.
        self.address = unsafe { libc::realloc(self.address.cast(), bytes) }.cast();
        self.check(self.bytes.min(bytes));
        Self::adopt(self.address.cast(), bytes, mark)
    }

    fn check(&self, bytes: usize) {
        // SAFETY: the allocation is ours and written.
        let held = unsafe { std::slice::from_raw_parts(self.address, bytes) };
        let wrong = held.iter().position(|&byte| byte != self.mark);
        assert_eq!(wrong, None, "of {bytes} bytes at {:p}", self.address);
    }

    fn free(self) {
        self.check(self.bytes);
        // SAFETY: an allocation of ours, freed once.
        unsafe { libc::free(self.address.cast()) };
    }
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_lengths() {
    for (bytes, expected) in [
        (1, false),
        (LONG - 1, false),
        (LONG, true),
        (5 * MIB + 3, true),
    ] {
        let block = Block::new(bytes, 7);
        assert_eq!(is_in_heap(block.address.cast()), expected, "{bytes}");
        // SAFETY: an allocation of ours.
        let usable = unsafe { libc::malloc_usable_size(block.address.cast()) };
        assert!(
            usable >= bytes && usable < bytes + 4096 + 64,
            "{bytes}: {usable}"
        );
        block.free();
    }
    let vector = vec![3_u8; 3 * MIB];
    assert!(is_in_heap(vector.as_ptr().cast()));
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_zero() {
    for _ in 0..20 {
        Block::new(MIB, 0xff).free();
        // SAFETY: plain allocation.
        let address = unsafe { libc::calloc(MIB / 8, 8) };
        assert!(is_in_heap(address));
        Block {
            address: address.cast(),
            bytes: MIB,
            mark: 0,
        }
        .free();
    }
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_realloc() {
    let steps = [
        100,
        LONG - 1,
        LONG,
        LONG + 1,
        5 * MIB,
        5 * MIB + 1,
        2 * MIB,
        LONG - 1,
        10,
        3 * MIB,
        64 * MIB,
        5,
    ];
    let mut block = Block::new(50, 1);
    for (index, &bytes) in steps.iter().enumerate() {
        block = block.resized(bytes, index as u8 + 2);
        assert_eq!(is_in_heap(block.address.cast()), bytes >= LONG, "{bytes}");
    }
    block.free();
    // SAFETY: as realloc(3) has it: none before, none after.
    unsafe {
        let fresh = libc::realloc(std::ptr::null_mut(), MIB);
        assert!(is_in_heap(fresh));
        assert!(libc::realloc(fresh, 0).is_null());
        libc::free(std::ptr::null_mut());
    }
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_alignment() {
    for power in 3..24 {
        let align = 1 << power;
        for bytes in [100, LONG, MIB + 1] {
            let mut place = std::ptr::null_mut();
            // SAFETY: the place is ours.
            assert_eq!(unsafe { libc::posix_memalign(&mut place, align, bytes) }, 0);
            assert_eq!(place as usize % align, 0, "{align} {bytes}");
            Block::adopt(place, bytes, 9).free();
            // SAFETY: plain allocation.
            let address = unsafe { libc::aligned_alloc(align, bytes.next_multiple_of(align)) };
            assert_eq!(address as usize % align, 0, "{align} {bytes}");
            Block::adopt(address, bytes, 9).free();
        }
    }
    let mut place = std::ptr::null_mut();
    for wrong in [0, 4, 24] {
        // SAFETY: the place is ours.
        let code = unsafe { libc::posix_memalign(&mut place, wrong, MIB) };
        assert_eq!(code, libc::EINVAL);
    }
}

/// Memory that the heap's file holds, in bytes.
fn file_memory_bytes() -> usize {
    let (descriptor, ..) = heap();
    // SAFETY: stat is plain data; the descriptor is open.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        assert_eq!(libc::fstat(descriptor, &mut status), 0);
        status.st_blocks as usize * 512
    }
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_returned() {
    let before = file_memory_bytes();
    let blocks: Vec<Block> = (0..100).map(|index| Block::new(MIB, index)).collect();
    assert!(file_memory_bytes() >= before + 100 * MIB);
    blocks.into_iter().for_each(Block::free);
    assert!(
        file_memory_bytes() <= before + 33 * MIB,
        "{}",
        file_memory_bytes()
    );
    Block::new(200 * MIB, 1).free();
    assert!(file_memory_bytes() <= before + 33 * MIB);
}

/// Bytes of the heap's mappings that a core file would hold, and that it would not (proc_pid_smaps(5), `dd`).
fn dumped_bytes() -> (usize, usize) {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let (mut sums, mut length) = ((0, 0), 0);
    for line in text.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            let is_heap = line.contains("/memfd:weft-heap");
            length = if is_heap {
                number(to) - number(from)
            } else {
                0
            };
        } else if line.starts_with("VmFlags:") {
            if line.contains(" dd") {
                sums.1 += length;
            } else {
                sums.0 += length;
            }
        }
    }
    sums
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_core() {
    let (_, _, length) = heap();
    let block = Block::new(100 * MIB, 1);
    let (dumped, left_out) = dumped_bytes();
    assert!((100 * MIB..200 * MIB).contains(&dumped), "{dumped}");
    assert_eq!(dumped + left_out, length);
    block.free();
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_full() {
    assert_eq!(heap().2, 4 * MIB);
    let blocks: Vec<Block> = (0..10).map(|index| Block::new(MIB, index)).collect();
    let inside = blocks
        .iter()
        .filter(|block| is_in_heap(block.address.cast()))
        .count();
    assert!((1..=4).contains(&inside), "{inside}");
    let mut grown = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        grown.push(block.resized(2 * MIB, index as u8 + 20));
    }
    grown.into_iter().for_each(Block::free);
    let again = Block::new(3 * MIB, 1);
    assert!(is_in_heap(again.address.cast()), "all of it is free again");
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_impossible() {
    // SAFETY: none of them succeeds, so there is nothing to free.
    unsafe {
        assert!(libc::malloc(usize::MAX).is_null());
        assert!(libc::malloc(1 << 62).is_null());
        assert!(libc::calloc(1 << 33, 1 << 33).is_null());
        let block = Block::new(MIB, 3);
        assert!(libc::realloc(block.address.cast(), usize::MAX - 5).is_null());
        block.free();
    }
}

struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let given = std::env::var(SEED_VARIABLE)
            .ok()
            .and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761);
        println!("{SEED_VARIABLE}={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Allocates, resizes and frees at random, and passes some blocks to whoever takes them.
fn churn(mut random: Random, rounds: usize, shared: &std::sync::Mutex<Vec<Block>>) {
    let mut own: Vec<Block> = Vec::new();
    for round in 0..rounds {
        let bytes = 1 + random.below(4 * LONG);
        match random.below(5) {
            0 | 1 => own.push(Block::new(bytes, round as u8)),
            2 if !own.is_empty() => {
                let index = random.below(own.len());
                let block = own.swap_remove(index);
                own.push(block.resized(bytes, round as u8));
            }
            3 if !own.is_empty() => {
                let index = random.below(own.len());
                shared
                    .lock()
                    .expect("no panic")
                    .push(own.swap_remove(index));
            }
            _ => {
                let taken = shared.lock().expect("no panic").pop();
                taken
                    .or_else(|| own.pop())
                    .into_iter()
                    .for_each(Block::free);
            }
        }
    }
    own.into_iter().for_each(Block::free);
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_threads() {
    let mut random = Random::seeded();
    let shared = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (random, shared) = (Random(random.below(usize::MAX) as u64), &shared);
            scope.spawn(move || churn(random, 800, shared));
        }
    });
    shared
        .into_inner()
        .expect("no panic")
        .into_iter()
        .for_each(Block::free);
}

/// Runs `child` in a forked process; answers its exit code, -1 if it was killed.
fn forked(child: impl FnOnce() -> i32) -> i32 {
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
#[ignore = "run by a test of the same subject, preloaded"]
fn child_fork() {
    let block = Block::new(3 * MIB, 5);
    let hole = Block::new(2 * MIB, 6);
    let last = Block::new(MIB, 8);
    hole.free();
    let code = forked(|| {
        block.check(3 * MIB);
        last.check(MIB);
        assert_eq!(heap().0, -1, "a child has no heap that others may map");
        // SAFETY: an allocation of ours.
        unsafe { std::ptr::write_bytes(block.address, 99, 3 * MIB) };
        let own = Block::new(4 * MIB, 11);
        let inner = forked(|| {
            own.check(4 * MIB);
            0
        });
        own.free();
        last.resized(10 * MIB, 3).free();
        40 + inner
    });
    assert_eq!(code, 40);
    block.check(3 * MIB);
    block.free();
    Block::new(6 * MIB, 1).free();
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_fork_threads() {
    let mut random = Random::seeded();
    let shared = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (random, shared) = (Random(random.below(usize::MAX) as u64), &shared);
            scope.spawn(move || churn(random, 800, shared));
        }
        for round in 0..20 {
            let block = Block::new(MIB, round);
            let code = forked(|| {
                block.check(MIB);
                for index in 0..20 {
                    Block::new(LONG * (1 + index), 1).free();
                }
                7
            });
            assert_eq!(code, 7);
            block.free();
        }
    });
    shared
        .into_inner()
        .expect("no panic")
        .into_iter()
        .for_each(Block::free);
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_exec() {
    let block = Block::new(MIB, 5);
    let output = preloaded("child_lengths", &[]);
    assert!(output.status.success());
    let spawned = Command::new("/bin/sh")
        .args(["-c", "echo $((6 * 7))"])
        .output();
    assert_eq!(spawned.expect("a shell").stdout, b"42\n");
    block.free();
}

#[test]
fn a_limit_that_is_none_is_named_and_the_program_runs_without_a_heap() {
    let output = preloaded("child_nothing", &[(LIMIT_VARIABLE, "lots")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success());
    assert!(text.contains("WEFT_HEAP_LIMIT must be"), "{text}");
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_nothing() {
    assert_eq!(heap().0, -1);
    Block::new(MIB, 1).free();
}

#[test]
fn memory_that_is_freed_twice_ends_the_program_with_a_reason() {
    let output = preloaded("child_twice", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("free()"),
        "{text}"
    );
}

#[test]
#[ignore = "run by a test of the same subject, preloaded"]
fn child_twice() {
    let block = Block::new(MIB, 1);
    let address = block.address;
    block.free();
    // SAFETY: wrong on purpose; the library notices and ends the process.
    unsafe { libc::free(address.cast()) };
}
