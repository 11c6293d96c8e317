// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Congestion marks of the network: heeded like losses, with nothing sent again, and only on paths
//! that carry them as they should (srd-protocol 4.1, 10.12).

use std::cell::RefCell;
use std::rc::Rc;

use weft_srd::{Config, Ecn};
use weft_wire::marks::Marks;
use weft_wire::{Acknowledgement, Header, Packet, Path};

use crate::links::sealed;
use crate::pair::{MS, SECOND, World, config};

/// Two hosts of which the first has sent so much that its window has grown.
fn warm(seed: u64) -> World {
    let ecn = true;
    let mut world = World::with(2, seed, Config { ecn, ..config() });
    stream(&mut world, 0, 12);
    assert!(
        cwnd_bytes(&mut world) > 256 << 10,
        "{}",
        cwnd_bytes(&mut world)
    );
    world
}

fn stream(world: &mut World, first: u64, count: u64) {
    for token in first..first + count {
        world.post(0, 1, token, 1 << 20);
        world.run_until_quiet(SECOND);
    }
}

fn cwnd_bytes(world: &mut World) -> u64 {
    let remote = world.remote(0, 1);
    let inspection = world.hosts[0].machine.inspect();
    inspection.condition(remote).expect("a flow").cwnd_bytes
}

/// The paths on which the first host's packets leave with ECT from now on, as a set.
fn watch(
    world: &mut World,
    mut network: impl FnMut(Path, Ecn) -> Ecn + 'static,
) -> Rc<RefCell<u64>> {
    let paths = Rc::new(RefCell::new(0));
    let seen = paths.clone();
    world.remark = Box::new(move |from, path, ecn| {
        if from == 0 && ecn == Ecn::Ect0 {
            *seen.borrow_mut() |= path.bit();
        }
        if from == 0 { network(path, ecn) } else { ecn }
    });
    paths
}

fn marked(ecn: Ecn) -> Ecn {
    if ecn == Ecn::Ect0 { Ecn::Ce } else { ecn }
}

#[test]
fn marks_of_all_paths_shrink_the_window_and_nothing_is_sent_again() {
    for seed in [1, 2, 3] {
        let mut world = warm(seed);
        let before_bytes = cwnd_bytes(&mut world);
        let mut count = 0;
        watch(&mut world, move |_, ecn| {
            count += 1;
            if count % 20 == 0 { marked(ecn) } else { ecn }
        });
        stream(&mut world, 40, 4);
        let after_bytes = cwnd_bytes(&mut world);
        assert!(
            after_bytes * 2 < before_bytes,
            "{before_bytes} -> {after_bytes}"
        );
        let statistics = world.hosts[0].machine.inspect().statistics();
        assert_eq!(
            (statistics.lost_count, statistics.retransmitted_count),
            (0, 0)
        );
    }
}

/// One of eight source ports leads over a link that is full; the others are free.
#[test]
fn marks_of_a_few_paths_leave_most_of_the_window() {
    let mut world = warm(4);
    let bad = |path: Path| path.source_port_index() == 0;
    watch(
        &mut world,
        move |path, ecn| if bad(path) { marked(ecn) } else { ecn },
    );
    stream(&mut world, 40, 8);
    // Once it is known of which paths they are.
    let before_bytes = cwnd_bytes(&mut world);
    assert!(before_bytes > 64 << 10, "{before_bytes}");
}

#[test]
fn a_network_that_clears_the_field_is_used_without_and_other_paths_with_it() {
    let mut world = warm(5);
    let bad = |path: Path| path.number().is_multiple_of(2);
    watch(
        &mut world,
        move |path, ecn| if bad(path) { Ecn::NotEct } else { ecn },
    );
    stream(&mut world, 40, 8);
    let with = watch(&mut world, |_, ecn| ecn);
    stream(&mut world, 60, 4);
    let with = *with.borrow();
    let mangled = (0..64).filter(|path| path % 2 == 0 && with >> path & 1 == 1);
    assert_eq!(mangled.count(), 0, "{with:x}");
    assert!(with.count_ones() > 16, "{with:x}");
}

/// Nothing is gained by heeding marks that mean nothing: the window recovers.
#[test]
fn a_network_that_marks_everything_is_used_without() {
    let mut world = warm(6);
    watch(&mut world, |_, ecn| marked(ecn));
    stream(&mut world, 40, 20);
    let with = watch(&mut world, |_, ecn| marked(ecn));
    stream(&mut world, 60, 2);
    let (with, bytes) = (with.borrow().count_ones(), cwnd_bytes(&mut world));
    assert!(with == 0 && bytes > 16 << 10, "{with} paths, {bytes}");
}

/// Some devices drop what has ECT set.
#[test]
fn a_network_that_swallows_what_it_does_not_know_is_used_without() {
    let mut world = World::with(
        2,
        7,
        Config {
            ecn: true,
            ..config()
        },
    );
    watch(&mut world, |_, ecn| {
        if ecn == Ecn::Ect0 { Ecn::Unknown } else { ecn }
    });
    for token in 0..10 {
        world.post(0, 1, token, 40_000);
        world.run_until_quiet(10 * SECOND);
    }
    let with = watch(&mut world, |_, ecn| ecn);
    world.post(0, 1, 10, 40_000);
    world.run_until_quiet(SECOND);
    assert_eq!(*with.borrow(), 0);
}

#[test]
fn marks_of_more_packets_than_were_sent_are_a_violation_and_change_nothing() {
    let mut world = warm(8);
    let before_bytes = cwnd_bytes(&mut world);
    world.run_for(MS);
    let own = [0, 1].map(|host| world.hosts[host].machine.inspect().incarnation());
    let sent_ns = weft_srd::Instant(world.now);
    let packet = Packet {
        header: Header {
            context: 1,
            ..Header::unreliable(Path::from_ports(0, 0), own[1], own[0], sent_ns)
        },
        hello: None,
        acknowledgement: Some(Acknowledgement {
            cumulative: 0,
            received_bytes: 0,
            echo_sent_ns: sent_ns,
            echo_sequence: weft_wire::acknowledgement::NO_SEQUENCE,
            hold_ns: 0,
            echo_path: Path::from_ports(0, 0),
            penalty: 0,
            duplicate_count: 0,
            paths_heard: 0,
            receive_limit: 0,
            credit_limit: 0,
            bitmap: [0; weft_wire::BITMAP_WORDS],
            marks: Some(Marks {
                paths_marked: u64::MAX,
                paths_mangled: u64::MAX,
                ce_count: u32::MAX,
                in_row_count: 1,
            }),
        }),
        body: weft_wire::Body::Acknowledgement,
        payload: &[],
    };
    let mut head = weft_wire::Head::new();
    packet.write(&mut head);
    let violations = |world: &World| {
        world.hosts[0]
            .machine
            .inspect()
            .statistics()
            .violation_count
    };
    assert_eq!(violations(&world), 0);
    world.deliver(0, crate::pair::address(1).into(), &sealed(&head, &[]));
    assert_eq!(violations(&world), 1);
    assert_eq!(cwnd_bytes(&mut world), before_bytes);
}
