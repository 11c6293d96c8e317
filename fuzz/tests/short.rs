// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each target for some seconds: from a fixed seed, and from one that differs each time and is
//! printed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weft_fuzz::{TARGETS, driver};

/// For each target and seed: 14 runs, so 28 s in all, side by side where there are cores.
const TIME: Duration = Duration::from_secs(2);

fn both_seeds(name: &str) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for seed in [1, clock.as_nanos() as u64] {
        println!("{name}: seed {seed}");
        let result = driver::run(*target, seed, TIME);
        assert!(
            result.is_ok(),
            "{result:?}: weft-fuzz {name} --seconds 0 --seed SEED"
        );
    }
}

#[test]
fn packets_of_anything_are_read_as_they_are_or_refused() {
    both_seeds("wire");
}

#[test]
fn packet_protection_lets_in_what_its_job_has_made_and_nothing_else() {
    both_seeds("seal");
}

#[test]
fn pieces_of_anything_are_joined_as_they_were_cut_or_take_no_more_than_their_room() {
    both_seeds("pieces");
}

#[test]
fn a_sender_gone_mad_is_cut_off_and_harms_nobody() {
    both_seeds("cells");
}

#[test]
fn whatever_is_played_back_messages_come_once_and_in_order() {
    both_seeds("machine");
}

#[test]
fn a_member_gone_mad_does_not_break_a_machine() {
    both_seeds("hostile");
}

#[test]
fn files_of_jobs_are_read_as_they_are_or_refused() {
    both_seeds("job");
}
