// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The preloaded library as a program and the provider meet it: this test binary, started again
//! with LD_PRELOAD, runs each `child_` test of the modules below, which offers memory through the
//! library's own function. Random ones take a seed, which is printed (WEFT_TEST_SEED repeats it).

#[path = "preloaded/children.rs"]
mod children;
#[path = "preloaded/forks.rs"]
mod forks;
#[path = "preloaded/memory.rs"]
mod memory;
#[path = "preloaded/offering.rs"]
mod offering;
#[path = "preloaded/random.rs"]
mod random;

use children::{passes, preloaded};

macro_rules! laws {
    ($($law:ident = $module:ident :: $child:ident $(with $name:ident $value:literal)?;)*) => {
        $(#[test]
        fn $law() {
            passes(concat!(stringify!($module), "::", stringify!($child)), &[$(($name, $value))?]);
        })*
    };
}

const LIMIT_VARIABLE: &str = "WEFT_HEAP_LIMIT";

laws! {
    a_block_is_shared_once_it_was_offered_again = memory::child_again;
    static_arrays_and_mapped_memory_are_shared_as_blocks_are = memory::child_kinds;
    stacks_and_files_and_memory_of_others_stay_private = memory::child_not_shared;
    memory_that_is_freed_is_shared_no_longer = memory::child_freed;
    memory_that_is_mapped_anew_is_shared_no_longer = memory::child_mapped_anew;
    shared_memory_that_the_program_throws_away_is_zero = memory::child_thrown_away;
    advised_and_locked_memory_stays_as_it_is = memory::child_advised;
    large_pages_come_where_the_program_asks_for_them = memory::child_large_pages;
    what_may_be_pinned_stays_private = memory::child_pinned;
    no_more_is_shared_than_the_limit = memory::child_limit with LIMIT_VARIABLE "4194304";
    a_descriptor_that_the_program_has_used_again_is_left_alone = memory::child_descriptor;
    each_endpoint_has_places_of_its_own = memory::child_places;
    malloc_is_the_c_librarys = memory::child_malloc;
    readers_find_the_same_bytes_while_memory_changes_hands = memory::child_readers;
    random_use_of_memory_never_shows_other_bytes = random::child_random;
    a_forked_child_has_memory_of_its_own = forks::child_fork;
    a_fork_copies_only_what_is_shared = forks::child_fork_large;
    a_fork_amid_threads_that_free_finds_sound_memory = forks::child_fork_threads;
    children_of_a_rank_preload_nothing = forks::child_exec;
}

#[test]
fn a_limit_that_is_none_is_named_and_the_program_runs_without() {
    let output = preloaded("memory::child_nothing", &[(LIMIT_VARIABLE, "lots")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success());
    assert!(text.contains("WEFT_HEAP_LIMIT must be"), "{text}");
    assert!(text.contains("not \"lots\""), "{text}");
}
