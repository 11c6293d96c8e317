// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of a list of routes alone: endpoints of which the first reaches one by each route.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use weft_contract::{Route, TransferError};
use weft_endpoint::Error;
use weft_endpoint::routes::{self, Either, RouteSettings, Routes, Scope};
use weft_in_process::InProcess;
use weft_shm::Transport;
use weft_simulated_wire::Wire;

use crate::datagrams::LOSSY;
use crate::fabrics::JoinedApart;
use crate::pair::*;

/// Two routes: the first and the third endpoint are on one host, the second on another.
type TwoRoutes = Routes<Transport, InProcess>;

/// Three routes, of which the second and the third are of types that only tests know.
type ThreeRoutes = Routes<Transport, Either<weft_simulated_wire::Transport, InProcess>>;

/// How far apart two endpoints were opened on one wire, whose endpoints have eight ports each.
fn apart(own: SocketAddr, other: SocketAddr) -> u16 {
    own.port().abs_diff(other.port()) / 8
}

/// Neighbours share memory, the next but one is on a wire that loses datagrams, and all others are
/// within the process.
fn three_routes() -> <ThreeRoutes as Route>::Settings {
    routes::Settings {
        first: RouteSettings {
            settings: weft_shm::Settings::default(),
            scope: Scope::By(|own, other| apart(own, other) <= 1),
        },
        others: vec![
            RouteSettings {
                settings: Either::Left(weft_udp::Settings::default()),
                scope: Scope::By(|own, other| apart(own, other) == 2),
            },
            RouteSettings {
                settings: Either::Right(()),
                scope: Scope::Everybody,
            },
        ],
        ..routes::Settings::default()
    }
}

/// Endpoints that all know each other, by the same names.
fn open<const N: usize, R: Route>(address: SocketAddr, settings: R::Settings) -> [Side<R>; N] {
    let open = |_| Side::open(Some(address), settings.clone(), Options::default());
    let mut sides = std::array::from_fn(open);
    let addresses: Vec<SocketAddr> = sides.iter_mut().map(Side::address).collect();
    for side in &mut sides {
        for address in &addresses {
            side.insert(*address);
        }
    }
    sides
}

fn name_of(index: usize) -> weft_endpoint::FiAddr {
    weft_endpoint::FiAddr(index as u64)
}

/// Lengths that take every protocol of every route.
fn length_of(number: usize) -> usize {
    [0, 8, 63, 4096, 9000, 70_000, 300_000][number % 7]
}

#[test]
fn a_receive_from_anyone_takes_from_both_routes_each_message_once_and_in_its_senders_order() {
    let address = JoinedApart::open().address().expect("a network");
    let mut sides = open::<3, TwoRoutes>(address, JoinedApart::settings());
    all_send_to_the_first(&mut sides);
    let statistics = sides[0]
        .domain
        .endpoints()
        .statistics(sides[0].endpoint)
        .unwrap();
    let first = statistics.local.expect("it is open").first;
    assert_eq!(
        first.remotes, 1,
        "the second one is not met in shared memory"
    );
}

#[test]
fn a_third_route_takes_its_place_in_the_list_and_carries_what_is_in_its_scope() {
    let address = SocketAddr::new(Wire::open(LOSSY), 0);
    let mut sides = open::<4, ThreeRoutes>(address, three_routes());
    all_send_to_the_first(&mut sides);
    let statistics = sides[0]
        .domain
        .endpoints()
        .statistics(sides[0].endpoint)
        .unwrap();
    let routes = statistics.local.expect("it is open");
    assert_eq!(routes.first.remotes, 1, "one is met in shared memory");
    let [Either::Left(wire), Either::Right(())] = routes.others[..] else {
        panic!("two other routes are open");
    };
    assert_eq!(wire.received_messages, EACH as u64, "{wire:?}");
}

/// Messages of each sender.
const EACH: usize = 100;

/// Every side but the first sends to it; all arrives once, whole and in the order of its sender.
fn all_send_to_the_first<R: Route>(sides: &mut [Side<R>]) {
    let start = Instant::now();
    let room = room(300_000);
    let senders = sides.len() - 1;
    let mut next: HashMap<usize, usize> = (1..=senders).map(|sender| (sender, 0)).collect();
    let mut sent = vec![0; sides.len()];
    let mut posted = false;
    while next.values().sum::<usize>() < senders * EACH {
        assert!(start.elapsed() < PATIENCE, "messages are missing: {next:?}");
        for (index, sent) in sent.iter_mut().enumerate().skip(1) {
            let (side, tag) = (&mut sides[index], *sent as u64);
            let payload = buffer_of(&pattern(*sent + index, length_of(*sent)));
            if *sent < EACH {
                match side.calls().send(name_of(0), &tagged(tag, 0), &payload) {
                    Ok(()) => *sent += 1,
                    Err(error) => assert_eq!(error, Error::Again),
                }
            }
        }
        if !posted {
            let anything = weft_endpoint::Receive {
                ignore: u64::MAX,
                ..want_tag(0, 1)
            };
            let side = &mut sides[0];
            side.calls().receive(&anything, || room.clone()).unwrap();
            posted = true;
        }
        sides.iter_mut().for_each(Side::poll);
        while let Some(outcome) = sides[0].heard() {
            let got = outcome.expect("a receive succeeds");
            let (from, number) = (got.source.0 as usize, got.tag as usize);
            let expected = next.get_mut(&from).expect("one of the senders");
            assert_eq!(number, *expected, "the order of sender {from}");
            assert_eq!(got.length_bytes, length_of(number));
            assert!(
                bytes_in(&room)[..length_of(number)] == pattern(number + from, length_of(number))
            );
            *expected += 1;
            posted = false;
        }
    }
}

static SENTENCES: AtomicUsize = AtomicUsize::new(0);

#[test]
fn without_a_network_a_remote_on_another_host_is_unreachable_and_the_user_is_told_once_what_to_do()
{
    let settings = routes::Settings::<weft_shm::Settings, ()> {
        report: |sentence| {
            assert!(sentence.contains("another host") && sentence.ends_with("Set a key."));
            SENTENCES.fetch_add(1, Ordering::Relaxed);
        },
        way_out: "Set a key.",
        ..routes::Settings::default()
    };
    let own = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut side: Side<TwoRoutes> = Side::open(own, settings, Options::default());
    let far = side.insert(SocketAddr::from(([192, 0, 2, 77], 9)));
    let payload = buffer_of(&[1]);
    for _ in 0..2 {
        assert_eq!(
            side.calls().send(far, &tagged(1, 1), &payload),
            Err(Error::Transfer(TransferError::Unreachable))
        );
    }
    assert_eq!(SENTENCES.load(Ordering::Relaxed), 1);
}
