// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the joined route alone: three endpoints, of which the first reaches one by each way.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use weft_contract::TransferError;
use weft_endpoint::Error;
use weft_endpoint::in_process::InProcess;
use weft_endpoint::joined::{self, Joined, Locality};
use weft_shm::Transport;

use crate::fabrics::JoinedApart;
use crate::pair::*;

type Three = [Side<Joined<Transport, InProcess>>; 3];

/// The first and the third are on one host, the second on another.
fn three() -> Three {
    let fabric = JoinedApart::open();
    let mut sides = [0, 1, 2].map(|_| {
        Side::open(
            fabric.address(),
            JoinedApart::settings(),
            Options::default(),
        )
    });
    let addresses = [0, 1, 2].map(|index: usize| sides[index].address());
    for side in &mut sides {
        for address in addresses {
            side.insert(address);
        }
    }
    sides
}

fn name_of(index: usize) -> weft_endpoint::FiAddr {
    weft_endpoint::FiAddr(index as u64)
}

/// Lengths that take every protocol of both ways.
fn length_of(number: usize) -> usize {
    [0, 8, 63, 4096, 9000, 70_000, 300_000][number % 7]
}

#[test]
fn a_receive_from_anyone_takes_from_both_ways_each_message_once_and_in_its_senders_order() {
    const EACH: usize = 100;
    let mut sides = three();
    let start = Instant::now();
    let room = room(300_000);
    let mut next = HashMap::from([(1, 0), (2, 0)]);
    let mut sent = [0, 0, 0];
    let mut posted = false;
    while next.values().sum::<usize>() < 2 * EACH {
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
            let expected = next.get_mut(&from).expect("one of the two senders");
            assert_eq!(number, *expected, "the order of sender {from}");
            assert_eq!(got.length_bytes, length_of(number));
            assert!(
                bytes_in(&room)[..length_of(number)] == pattern(number + from, length_of(number))
            );
            *expected += 1;
            posted = false;
        }
    }
    let statistics = sides[0]
        .domain
        .endpoints()
        .statistics(sides[0].endpoint)
        .unwrap();
    let local = statistics.local.expect("it is open").local;
    assert_eq!(
        local.remotes, 1,
        "the second one is not met in shared memory"
    );
}

static SENTENCES: AtomicUsize = AtomicUsize::new(0);

#[test]
fn without_a_network_a_remote_on_another_host_is_unreachable_and_the_user_is_told_once_what_to_do()
{
    let settings = joined::Settings::<weft_shm::Settings, ()> {
        locality: Locality::ByInterface,
        report: |sentence| {
            assert!(sentence.contains("another host") && sentence.ends_with("Set a key."));
            SENTENCES.fetch_add(1, Ordering::Relaxed);
        },
        without_network: "Set a key.",
        ..joined::Settings::default()
    };
    let own = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut side: Side<Joined<Transport, InProcess>> =
        Side::open(own, settings, Options::default());
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
