// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Somebody on the path has no key, and records, plays back, reflects, redirects, and does the same
//! with every answer that this brings. Nothing of it changes an established flow (srd-protocol
//! 14.7, 14.9). All hosts have the same first port here, which is what such an attack needs.

use weft_srd::{Config, Failure, Instant, Origin};
use weft_wire::{Alive, Body, Header, Packet, Path};

use crate::links::sealed;
use crate::pair::{MS, Recorded, SECOND, US, World, address, config, seeds};

fn keyed() -> Config {
    Config {
        fresh_contact: true,
        ..config()
    }
}

fn world(hosts: usize, seed: u64) -> World {
    let mut world = World::with(hosts, seed, keyed());
    world.recorded = Some(Vec::new());
    world
}

/// Everything that was sent so far goes to everybody, from wherever; so does what comes of it, some
/// rounds long.
fn play_all(world: &mut World, hosts: usize) {
    let mut begin = 0;
    for _ in 0..4 {
        let tape: Vec<Recorded> = world.recorded.as_ref().expect("recorded")[begin..].to_vec();
        begin += tape.len();
        for (to, from) in (0..hosts).flat_map(|to| (0..hosts).map(move |from| (to, from))) {
            for one in &tape {
                let origin = Origin::from(address(from));
                world.deliver(to, origin, &one.bytes);
                world.run_for(US);
            }
            // One stale answer in 10 ms: none is kept back for want of time.
            world.run_for(11 * MS);
        }
    }
}

fn assert_whole(world: &mut World, token: u64) {
    for host in &world.hosts {
        assert_eq!((&host.lost[..], &host.failed[..]), (&[][..], &[][..]));
    }
    let before = [0, 1].map(|host: usize| world.hosts[host].got.len());
    for (from, to) in [(0, 1), (1, 0)] {
        world.post(from, to, token, 100);
        world.post(from, to, token + 1, 200_000);
    }
    world.run_until_quiet(5 * SECOND);
    for (host, before) in [0, 1].into_iter().zip(before) {
        assert_eq!(world.hosts[host].got.len(), before + 2);
    }
}

#[test]
fn nothing_captured_or_made_of_it_by_anybody_changes_an_established_flow() {
    for seed in seeds(0..2) {
        let mut world = world(3, seed);
        for token in 0..4 {
            world.post(0, 1, token, [10, 5_000][(token % 2) as usize]);
            world.post(1, 0, token, [10, 5_000][(token % 2) as usize]);
        }
        world.run_until_quiet(SECOND);
        play_all(&mut world, 3);
        assert_whole(&mut world, 100);
        assert_eq!(world.hosts[2].got.len(), 0);
    }
}

/// The third host knows both, so that it has something to answer with.
#[test]
fn what_a_member_says_of_packets_that_were_for_another_is_believed_of_nobody_else() {
    let mut world = world(3, 3);
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 1)] {
        world.post(from, to, 1, 100);
    }
    world.run_until_quiet(SECOND);
    play_all(&mut world, 3);
    assert_whole(&mut world, 100);
}

#[test]
fn a_first_packet_that_is_thrown_back_makes_nobody_take_itself_for_its_remote() {
    let mut world = world(3, 4);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 1, 100);
    world.run_for(US);
    play_all(&mut world, 3);
    world.swallow = Box::new(|_, _, _, _| false);
    world.run_until_quiet(SECOND);
    assert_eq!(world.hosts[0].sent, [1]);
    assert_whole(&mut world, 100);
}

/// What the network doubles, or somebody, costs its receiver nothing, and tells the sender nothing
/// of losses.
#[test]
fn what_is_played_back_on_its_path_is_not_answered() {
    let mut world = world(2, 5);
    for token in 0..20 {
        world.post(0, 1, token, [10, 5_000][(token % 2) as usize]);
    }
    world.run_until_quiet(SECOND);
    world.run_for(MS);
    let tape = world.recorded.clone().expect("recorded");
    let sent = world.sent_per_host.clone();
    for one in tape.iter().filter(|one| one.to == 1) {
        let origin = Origin::from(one.from);
        world.deliver(1, origin, &one.bytes);
        world.run_for(MS);
    }
    // Before the two knew each other their packets named no target; those are greeted, as a
    // stranger's are.
    let greeted = world.sent_per_host[1] - sent[1];
    assert!(greeted <= 2, "{greeted} answers to {} packets", tape.len());
}

/// What host 1 says of heartbeats that were asked for at this time.
fn alive(world: &World, asked_ns: u64) -> Vec<u8> {
    let packet = Packet {
        header: Header {
            path: Path::from_ports(0, 0),
            acknowledge_now: false,
            retransmission: false,
            sealed: false,
            ect: false,
            context: 0,
            source: 4711,
            target: world.hosts[0].machine.inspect().incarnation(),
            sent_ns: Instant(1),
            sequence: 0,
            further_count: 0,
        },
        hello: None,
        acknowledgement: None,
        body: Body::Alive(Alive {
            incarnation: world.hosts[1].machine.inspect().incarnation(),
            echo_sent_ns: Instant(asked_ns),
            home: address(1),
        }),
        payload: &[],
    };
    let mut head = weft_wire::Head::new();
    packet.write(&mut head);
    sealed(&head, &[])
}

fn tell_alive(world: &mut World, bytes: &[u8]) {
    let origin = Origin::from(address(1));
    world.deliver(0, origin, bytes);
}

/// Host 0 has a message for host 1, which was heard once and whose datagrams are all lost now.
fn world_whose_second_host_falls_silent() -> World {
    let mut world = world(2, 6);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(SECOND);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    world
}

#[test]
fn who_answers_heartbeats_is_waited_for_and_an_answer_that_is_played_back_keeps_nobody_alive() {
    let mut world = world_whose_second_host_falls_silent();
    for _ in 0..20 {
        world.run_for(SECOND);
        let answer = alive(&world, world.now - 100 * MS);
        tell_alive(&mut world, &answer);
    }
    assert_eq!(world.hosts[0].failed, [], "it computes for 20 s");
    let last = alive(&world, world.now - 100 * MS);
    for _ in 0..6 {
        tell_alive(&mut world, &last);
        world.run_for(SECOND);
    }
    assert_eq!(world.hosts[0].failed, [(2, Failure::Lost)]);
}

/// As where a batch system suspends a job again and again, of which one process computes.
#[test]
fn who_answers_heartbeats_is_asked_again_however_often_both_were_stopped() {
    let mut world = world_whose_second_host_falls_silent();
    for _ in 0..4 {
        world.run_for(SECOND);
        let answer = alive(&world, world.now - 100 * MS);
        tell_alive(&mut world, &answer);
        world.run_for(SECOND);
        world.hosts[0].away_until = world.now + 20 * SECOND;
        world.run_for(20 * SECOND);
    }
    world.run_for(SECOND);
    assert_eq!(world.hosts[0].failed, []);
    // Who says nothing any more is found dead, however often he was away before.
    world.run_for(5 * SECOND);
    assert_eq!(world.hosts[0].failed, [(2, Failure::Lost)]);
}

#[test]
fn a_silent_remote_is_asked_at_its_heartbeat_port_some_times() {
    let mut world = world(2, 7);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(SECOND);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    world.run_for(4 * SECOND);
    let asked = world.heartbeats;
    assert!((3..=4).contains(&asked), "{asked} heartbeats in 4 s");
    let ports = world.heartbeat_ports.count_ones() as usize;
    assert_eq!(
        ports, asked,
        "each leaves from another port: a path may be dead"
    );
}

#[test]
fn what_a_host_is_said_to_refuse_ends_no_flow_of_a_process_that_answers() {
    let mut world = world(2, 8);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(SECOND);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    let remote = world.remote(0, 1);
    for _ in 0..100 {
        let now = world.now;
        world.hosts[0]
            .machine
            .at(remote)
            .handle_refused(Instant(now));
        world.run_for(50 * MS);
        let answer = alive(&world, world.now - 10 * MS);
        tell_alive(&mut world, &answer);
    }
    assert_eq!(world.hosts[0].failed, []);
}

/// Two complaints of three are read before the answers that came meanwhile, as a socket gives them.
#[test]
fn who_was_away_judges_what_a_host_refuses_only_after_what_has_arrived() {
    let mut world = world(2, 9);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(SECOND);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    let remote = world.remote(0, 1);
    for _ in 0..20 {
        let now = world.now;
        world.hosts[0]
            .machine
            .at(remote)
            .handle_refused(Instant(now));
        world.run_for(MS);
        let asked = world.now;
        // The process waits for a processor.
        world.now += 700 * MS;
        let now = world.now;
        for _ in 0..3 {
            world.hosts[0]
                .machine
                .at(remote)
                .handle_refused(Instant(now));
        }
        let answer = alive(&world, asked);
        tell_alive(&mut world, &answer);
        world.run_for(MS);
        assert_eq!(world.hosts[0].failed, []);
    }
}

#[test]
fn a_lost_heartbeat_and_forged_complaints_end_no_flow() {
    let mut world = world(2, 10);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(SECOND);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    let remote = world.remote(0, 1);
    for round in 0..300 {
        let now = world.now;
        for _ in 0..5 {
            world.hosts[0]
                .machine
                .at(remote)
                .handle_refused(Instant(now));
        }
        world.run_for(10 * MS);
        // Every second answer within a tenth of a second is lost.
        if round % 20 == 19 {
            let answer = alive(&world, world.now - 5 * MS);
            tell_alive(&mut world, &answer);
        }
    }
    assert_eq!(world.hosts[0].failed, []);
    let asked = world.heartbeats;
    assert!((20..100).contains(&asked), "{asked} heartbeats in 3 s");
}
