// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long recovery takes, what it costs, and that silence is not mistaken for loss or death.

use weft_srd::{Failure, Instant};

use crate::pair::{MS, SECOND, US, World, config};

/// Two hosts that know each other and have round trips.
pub fn acquainted(seed: u64) -> World {
    let mut world = World::new(2, seed);
    for token in 0..20 {
        world.post(0, 1, 1000 + token, 500);
        world.run_for(100 * US);
    }
    world.run_until_quiet(10 * MS);
    world
}

#[test]
fn a_lost_tail_is_sent_again_within_the_tail_probe_and_on_another_path() {
    let mut world = acquainted(1);
    let mut first = true;
    world.swallow = Box::new(move |from, _, _, _| from == 0 && std::mem::take(&mut first));
    world.post(0, 1, 1, 100);
    let took = world.run_until_quiet(10 * MS);
    // 2 srtt and the acknowledgement's delay until the probe, one link, and the answer.
    assert!(took < 150 * US, "{} us", took / US);
    let statistics = world.hosts[0].machine.inspect().statistics();
    assert_eq!((statistics.tail_probe_count, statistics.rto_count), (1, 0));
}

#[test]
fn a_gap_inside_a_stream_costs_about_a_round_trip_and_no_time_out() {
    let mut world = acquainted(2);
    let mut number = 0;
    world.swallow = Box::new(move |from, _, _, _| {
        number += u64::from(from == 0);
        from == 0 && number == 15
    });
    world.post(0, 1, 1, 60_000);
    let took = world.run_until_quiet(10 * MS);
    assert!(took < 200 * US, "{} us", took / US);
    let statistics = world.hosts[0].machine.inspect().statistics();
    assert_eq!(statistics.rto_count, 0);
    assert!(statistics.retransmitted_count <= 3, "{statistics:?}");
}

#[test]
fn an_unknown_remote_is_tried_again_with_doubling_pauses() {
    let mut world = World::new(2, 3);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 1, 100);
    world.run_for(SECOND);
    let statistics = world.hosts[0].machine.inspect().statistics();
    // 1, 2, 4 ... 64 ms, then every 100 ms: about 16 in a second.
    // Four of the pauses stay at 1.6 ms.
    assert!((12..=24).contains(&statistics.rto_count), "{statistics:?}");
    assert_eq!(statistics.suspect_count, 0);
}

#[test]
fn a_dead_path_is_left_and_later_traffic_avoids_it() {
    let mut world = acquainted(4);
    world.swallow = Box::new(|_, _, path, _| path.number() % 4 == 1);
    for token in 0..800 {
        world.post(0, 1, token, 150_000);
        world.run_until_quiet(10 * MS);
    }
    let learning = world.hosts[0].machine.inspect().statistics();
    for token in 800..1000 {
        world.post(0, 1, token, 150_000);
        let took = world.run_until_quiet(10 * MS);
        assert!(took < MS, "{} us", took / US);
    }
    let known = world.hosts[0].machine.inspect().statistics();
    assert!(learning.suspect_count >= 10, "{learning:?}");
    let remote = world.remote(0, 1);
    let condition = world.hosts[0].machine.inspect().condition(remote).unwrap();
    // A fourth cannot go there, and a fourth of the rest cannot come back.
    assert!(
        (30..=48).contains(&condition.good_path_count),
        "{condition:?}"
    );
    assert!(
        (20 * US..200 * US).contains(&condition.srtt_ns.0),
        "{condition:?}"
    );
    let again = known.retransmitted_count - learning.retransmitted_count;
    println!(
        "{} sent again while learning, {again} later",
        learning.retransmitted_count
    );
    assert!(
        again < 20,
        "{again} retransmissions on paths that are known to be dead"
    );
}

#[test]
fn a_path_that_heals_is_used_again() {
    let mut world = acquainted(5);
    world.swallow = Box::new(|_, _, path, now| path.number() < 32 && now < 2 * SECOND);
    while world.now < 3 * SECOND + 500 * MS {
        let token = world.now;
        world.post(0, 1, token, 20_000);
        world.run_until_quiet(100 * MS);
        world.run_for(20 * MS);
    }
    let seen = std::rc::Rc::new(std::cell::Cell::new(0u64));
    let set = std::rc::Rc::clone(&seen);
    world.swallow = Box::new(move |from, _, path, _| {
        if from == 0 {
            set.set(set.get() | path.bit());
        }
        false
    });
    // Small traffic stays on paths that work; a large window needs more of them than that.
    for token in 0..4 {
        world.post(0, 1, token, 4_000_000);
        world.run_until_quiet(100 * MS);
    }
    let healed = (seen.get() & u64::from(u32::MAX)).count_ones();
    assert!(healed > 4, "only {healed} of 32 healed paths are used");
}

#[test]
fn half_of_the_paths_failing_at_once_costs_a_large_transfer_less_than_a_millisecond() {
    let undisturbed = {
        let mut world = acquainted(6);
        world.post(0, 1, 1, 4_000_000);
        world.run_until_quiet(100 * MS)
    };
    let mut world = acquainted(6);
    let fails = world.now + 300 * US;
    world.swallow = Box::new(move |_, _, path, now| now > fails && path.number() % 2 == 0);
    world.post(0, 1, 1, 4_000_000);
    let took = world.run_until_quiet(100 * MS);
    assert!(
        took < undisturbed + MS,
        "{} us against {} us",
        took / US,
        undisturbed / US
    );
}

#[test]
fn a_remote_that_computes_is_neither_loss_nor_death() {
    let mut world = acquainted(7);
    let before = world.hosts[0].machine.inspect().statistics();
    world.hosts[1].away_until = world.now + 400 * MS;
    for token in 0..10 {
        world.post(0, 1, token, 2_000);
    }
    world.run_for(399 * MS);
    let during = world.hosts[0].machine.inspect().statistics();
    let again = during.retransmitted_count - before.retransmitted_count;
    // Pauses from 200 us to 100 ms, one packet each: they double, but four stay at 800 us.
    assert!(
        again <= 20,
        "{again} packets sent again to a remote that computes"
    );
    let took = world.run_until_quiet(10 * MS);
    assert!(took < 2 * MS, "{} us after its return", took / US);
    let after = world.hosts[0].machine.inspect().statistics();
    assert_eq!(
        after.suspect_count, before.suspect_count,
        "no path is to blame"
    );
    assert_eq!(after.lost_count, before.lost_count, "nothing was lost");
    assert!(world.hosts[0].lost.is_empty());
    assert_eq!(world.hosts[1].got.len(), 30);
}

#[test]
fn a_dead_remote_fails_everything_after_the_set_time() {
    let mut world = acquainted(8);
    world.post(0, 1, 1, 500_000);
    world.run_for(30 * US);
    world.post(0, 1, 2, 10);
    world.swallow = Box::new(|_, _, _, _| true);
    let start = world.now;
    world.run_for(4_900 * MS);
    assert!(world.hosts[0].failed.is_empty());
    world.run_for(300 * MS);
    let remote = world.remote(0, 1);
    assert_eq!(
        world.hosts[0].failed,
        [(1, Failure::Lost), (2, Failure::Lost)]
    );
    assert_eq!(world.hosts[0].lost, [(remote, Failure::Lost)]);
    assert!(
        !world.try_post(0, 1, 3, 10, false),
        "nothing can be posted to a dead remote"
    );
    assert!(world.now - start <= 5_200 * MS);
    // The receiver of a message under way hears of it as well.
    world.run_for(10 * SECOND);
    assert_eq!(
        world.hosts[1].landings_failed,
        world.hosts[1].got.len() - 20
    );
}

#[test]
fn two_that_were_stopped_together_for_longer_than_death_takes_ask_before_they_judge() {
    for (stopped_ns, ahead_ns) in [
        (6 * SECOND, 0),
        (6 * SECOND, 300 * MS),
        (60 * SECOND, 2 * SECOND),
    ] {
        let mut world = acquainted(8);
        world.post(0, 1, 1, 500_000);
        world.post(1, 0, 2, 500_000);
        // The second is stopped a moment before the first, who has asked it in vain some times
        // then, and comes back later.
        world.run_for(30 * US);
        world.hosts[1].away_until = world.now + 50 * MS + stopped_ns + ahead_ns;
        world.run_for(50 * MS);
        world.hosts[0].away_until = world.now + stopped_ns;
        world.run_for(stopped_ns + ahead_ns);
        world.run_until_quiet(10 * SECOND);
        for (token, host) in [(1, &world.hosts[0]), (2, &world.hosts[1])] {
            assert!(host.lost.is_empty() && host.failed.is_empty());
            assert!(host.sent.contains(&token));
        }
    }
}

#[test]
fn who_was_away_finds_the_dead_no_later_than_death_takes_from_then() {
    let mut world = acquainted(8);
    world.post(0, 1, 1, 500_000);
    world.swallow = Box::new(|_, _, _, _| true);
    world.run_for(50 * MS);
    world.hosts[0].away_until = world.now + 20 * SECOND;
    world.run_for(20 * SECOND);
    assert!(world.hosts[0].failed.is_empty());
    world.run_for(5 * SECOND);
    assert_eq!(world.hosts[0].failed, [(1, Failure::Lost)]);
}

#[test]
fn a_remote_that_dies_while_it_holds_an_offer_is_found_dead() {
    let mut world = acquainted(9);
    world.hosts[1].policy = crate::pair::Policy::Keep;
    world.post(0, 1, 1, 500_000);
    world.run_for(500 * MS);
    world.swallow = Box::new(|_, _, _, _| true);
    world.run_for(7 * SECOND);
    assert_eq!(world.hosts[0].failed, [(1, Failure::Lost)]);
}

#[test]
fn refused_datagrams_end_a_flow_unless_its_process_contradicts_soon() {
    let mut world = acquainted(10);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 1, 100);
    world.run_for(MS);
    let remote = world.remote(0, 1);
    for _ in 0..3 {
        let now = world.now;
        world.hosts[0]
            .machine
            .at(remote)
            .handle_refused(Instant(now));
    }
    world.run_for(200 * MS);
    assert_eq!(world.hosts[0].failed, [], "anybody may have said so");
    world.run_for(200 * MS);
    assert_eq!(world.hosts[0].failed, [(1, Failure::Lost)]);
}

#[test]
fn acknowledgements_that_are_lost_cost_duplicates_and_nothing_more() {
    let mut world = acquainted(11);
    let mut random = weft_srd::random::Random::new(11);
    world.swallow = Box::new(move |from, _, _, _| from == 1 && random.below(100) < 60);
    let list: Vec<(u64, usize)> = (0..60).map(|token| (token, 10_000)).collect();
    for (token, length) in &list {
        world.post(0, 1, *token, *length);
        world.run_for(300 * US);
    }
    world.run_until_quiet(2 * SECOND);
    assert_eq!(world.hosts[1].got.len(), 80);
}

#[test]
fn a_network_that_flaps_for_less_than_a_time_out_costs_about_as_long_as_it_flapped() {
    let undisturbed = {
        let mut world = acquainted(12);
        world.post(0, 1, 1, 1_000_000);
        world.run_until_quiet(100 * MS)
    };
    let mut world = acquainted(12);
    let start = world.now + 100 * US;
    world.swallow = Box::new(move |_, _, _, now| now >= start && now < start + 150 * US);
    world.post(0, 1, 1, 1_000_000);
    let took = world.run_until_quiet(100 * MS);
    assert!(
        took < undisturbed + 600 * US,
        "{} us against {} us",
        took / US,
        undisturbed / US
    );
    assert!(world.hosts[0].lost.is_empty());
}

#[test]
fn data_that_vanishes_one_way_while_answers_come_through_recovers_on_other_paths() {
    let mut world = acquainted(13);
    let start = world.now + 50 * US;
    world.swallow = Box::new(move |from, _, path, now| {
        from == 0 && now > start && path.source_port_index() < 6
    });
    world.post(0, 1, 1, 2_000_000);
    let took = world.run_until_quiet(100 * MS);
    assert!(took < 5 * MS, "{} us", took / US);
}

#[test]
fn all_paths_changing_their_length_at_once_is_survived() {
    let mut world = acquainted(14);
    for round in 0..20 {
        world.weather.delay_ns = [10 * US, 200 * US, 30 * US, MS][round % 4];
        world.post(0, 1, round as u64, 400_000);
        world.run_for(150 * US);
    }
    // Until the longer route counts as such, it looks like a queue.
    let took = world.run_until_quiet(10 * SECOND);
    assert!(took < 5 * SECOND, "{} ms", took / MS);
    let list: Vec<(u64, usize)> = (0..20).map(|token| (token, 400_000)).collect();
    let got = world.hosts[1].got.split_off(20);
    assert_eq!(got.len(), list.len());
    assert_eq!(
        world.hosts[1]
            .machine
            .inspect()
            .statistics()
            .violation_count,
        0
    );
}

#[test]
fn a_jump_of_the_clock_ends_nothing_that_still_answers() {
    let mut world = acquainted(15);
    world.post(0, 1, 1, 1_000_000);
    world.run_for(50 * US);
    // Both slept for longer than silence may last, as virtual machines that are moved.
    world.hosts[0].away_until = world.now + 8 * SECOND;
    world.hosts[1].away_until = world.now + 8 * SECOND;
    world.run_until_quiet(9 * SECOND);
    assert!(world.hosts[0].lost.is_empty() && world.hosts[1].lost.is_empty());
    assert_eq!(world.hosts[0].sent.len(), 21);
}

#[test]
fn what_datagrams_wait_in_sockets_does_not_slow_the_sender_when_the_driver_knows_it() {
    let time = |known: bool| {
        let mut world = acquainted(16);
        world.wait_known = known;
        // The receiver looks at its sockets every 300 us only.
        world.post(0, 1, 1, 3_000_000);
        let start = world.now;
        while world.hosts[0].sent.len() < 21 {
            world.hosts[1].away_until = world.now + 300 * US;
            world.run_for(310 * US);
            assert!(world.now < start + SECOND);
        }
        world.now - start
    };
    let (known, unknown) = (time(true), time(false));
    assert!(
        2 * known < unknown,
        "{} us against {} us",
        known / US,
        unknown / US
    );
}

/// The mean of 36 moments: single ones give 1.4 to 10 times. After 20 ms a trial finds out by
/// itself that the lag is no queue of ours (srd-protocol 10.10).
#[test]
fn what_a_host_takes_to_send_does_not_keep_the_window_small_when_the_driver_knows_it() {
    let mean_cwnd_bytes = |known: bool| {
        let mut world = acquainted(16);
        (world.lag_ns, world.lag_known) = (300 * US, known);
        world.post(0, 1, 1, 16_000_000);
        let remote = world.remote(0, 1);
        let mut sum = 0;
        for _ in 0..36 {
            world.run_for(500 * US);
            let condition = world.hosts[0].machine.inspect().condition(remote);
            sum += condition.unwrap().cwnd_bytes;
        }
        sum / 36
    };
    let (known, unknown) = (mean_cwnd_bytes(true), mean_cwnd_bytes(false));
    println!("{known} against {unknown} bytes");
    assert!(known > 2 * unknown, "{known} against {unknown} bytes");
    assert!(known > 90_000, "{known} bytes");
}

#[test]
fn a_window_comes_back_when_what_was_sent_again_had_not_been_lost() {
    let mut config = config();
    config.pace.cwnd_limit_bytes = 256 << 10;
    let mut world = World::with(2, 17, config);
    world.post(0, 1, 1, 16_000_000);
    world.run_for(400 * US);
    let remote = world.remote(0, 1);
    let window = |world: &World| {
        world.hosts[0]
            .machine
            .inspect()
            .condition(remote)
            .unwrap()
            .cwnd_bytes
    };
    let before = window(&world);
    // For a while some packets come late: those behind them on the same path, and on others, make
    // them look lost.
    world.weather.jitter_ns = 200 * US;
    let mut least = before;
    for step in 0..40 {
        if step == 20 {
            world.weather.jitter_ns = 0;
        }
        world.run_for(5 * US);
        least = least.min(window(&world));
    }
    assert!(least < before, "nothing was taken");
    world.run_for(400 * US);
    let statistics = world.hosts[0].machine.inspect().statistics();
    assert!(!world.hosts[0].sent.contains(&1), "too short a message");
    assert!(statistics.lost_count > 20, "{statistics:?}");
    let duplicates = world.hosts[1]
        .machine
        .inspect()
        .statistics()
        .duplicate_count;
    assert!(duplicates > 0, "nothing came twice");
    let after = window(&world);
    println!("window {before} -> {least} -> {after}, {duplicates} duplicates");
    assert!(after >= before, "{before} -> {least} -> {after}");
}
