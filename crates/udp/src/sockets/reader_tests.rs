// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What reader.rs promises of the connected socket, between sockets of this machine.

use std::net::SocketAddr;

use weft_os::outbound;
use weft_os::sleep::{Timer, wait_readable};
use weft_seal::{JobKey, Trust};

use super::*;
use crate::settings::Settings;
use crate::sockets::found::DATAGRAM_COST_BYTES;
use crate::sockets::port_sockets::open_socket;

#[path = "queued_error_tests.rs"]
mod queued_error_tests;

/// More than the single datagrams after which the kernel need not join any, of which some are read
/// two by two.
const SINGLES_MOST: usize = 130;
const DATAGRAM_BYTES: usize = 100;
/// Datagrams that wait in each socket.
const WAITING_COUNT: usize = 15;

fn local() -> UdpSocket {
    open_socket("127.0.0.1:0".parse().expect("address")).expect("a socket")
}

/// Sends datagrams of [`DATAGRAM_BYTES`], joined if there are several.
fn send(socket: &UdpSocket, to: SocketAddr, count: usize) {
    let bytes = vec![7; count * DATAGRAM_BYTES];
    let segment_bytes = if count > 1 { DATAGRAM_BYTES as u16 } else { 0 };
    outbound::send_bytes(socket, to, &bytes, segment_bytes).expect("sent");
}

/// Reads as many datagrams as were sent; answers their lengths.
fn read(reader: &mut Reader, count: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    for _ in 0..1000 {
        reader.receive(&mut |_, incoming| {
            if let Incoming::Datagram(_, datagram) = incoming {
                lengths.push(datagram.len());
            }
        });
        if lengths.iter().sum::<usize>() >= count * DATAGRAM_BYTES {
            break;
        }
        let connected = reader.sockets.at(PORT_COUNT).as_fd().as_raw_fd();
        wait_readable(connected, 10);
    }
    lengths
}

/// A reader of eight sockets that nobody has sent to, without a connected one, and their addresses.
fn eight() -> (Reader, Vec<SocketAddr>) {
    eight_with(&Settings::default())
}

fn eight_with(settings: &Settings) -> (Reader, Vec<SocketAddr>) {
    let sockets: Vec<_> = (0..PORT_COUNT).map(|_| local()).collect();
    let address = |socket: &UdpSocket| socket.local_address().expect("address");
    let addresses = sockets.iter().map(address).collect();
    let timer = Timer::new().expect("a timer");
    let sockets = PortSockets::new(sockets, &timer).expect("a wait set");
    let authentication = PacketAuthentication::open(settings).expect("random numbers");
    (Reader::new(sockets, authentication, 1), addresses)
}

fn with_key() -> Settings {
    Settings {
        trust: Some(Trust {
            job_key: Some(JobKey::generate().expect("random numbers")),
            ..Trust::default()
        }),
        ..Settings::default()
    }
}

/// Looks once; answers how many datagrams were let in.
fn receive(reader: &mut Reader) -> usize {
    let mut count = 0;
    reader.receive(&mut |_, incoming| {
        count += usize::from(matches!(incoming, Incoming::Datagram(..)));
    });
    count
}

/// A reader that expects one datagram at a time in one socket: the connected one, or else the first
/// one.
fn settled(connects: bool, far: &UdpSocket) -> (Reader, Vec<SocketAddr>) {
    settled_with(connects, far.local_address().expect("address"))
}

/// The same with who is at this address.
fn settled_with(connects: bool, far: SocketAddr) -> (Reader, Vec<SocketAddr>) {
    let (mut reader, addresses) = eight();
    if connects {
        reader.sockets.settle(0, far);
    }
    let index = if connects { PORT_COUNT } else { 0 };
    for _ in 0..6 {
        reader.polling.found(index, 1);
    }
    assert_eq!(reader.polling.next(), Look::At(index));
    (reader, addresses)
}

/// The last look was in vain and was then: times that no machine reaches make it the same on all.
fn looked_at(reader: &mut Reader, now_ns: Instant) {
    reader.polling.on_all_empty();
    reader.polling.on_clock(now_ns);
}

/// A process that was off its processor: what it answers to the half of it would look like a loss.
#[test]
fn short_datagrams_that_wait_in_several_sockets_are_all_read_before_anything_is_answered() {
    let far = local();
    let (mut reader, addresses) = eight();
    for to in &addresses {
        for _ in 0..WAITING_COUNT {
            send(&far, *to, 1);
        }
    }
    assert_eq!(receive(&mut reader), PORT_COUNT * WAITING_COUNT);
    // One that asks where something waits, and of each socket one for two and one for the others.
    assert_eq!(reader.call_count, 1 + 2 * PORT_COUNT as u64);
}

#[test]
fn what_was_joined_before_single_datagrams_will_do_again_is_still_taken_apart() {
    let far = local();
    let (mut reader, addresses) = eight();
    let to = addresses[0];
    if !far.can_send_joined() || !reader.sockets.at(0).receive_joined() {
        eprintln!("skipped: this kernel does not join datagrams");
        return;
    }
    let far_address = far.local_address().expect("address");
    reader.sockets.settle(0, far_address);
    let mut separate_count = 0;
    for before in 0..SINGLES_MOST {
        reader.sockets.join_connected();
        for _ in 0..before {
            send(&far, to, 1);
            assert_eq!(read(&mut reader, 1), [DATAGRAM_BYTES]);
        }
        separate_count += u32::from(!reader.sockets.connected_polling.is_joined());
        // The joined ones wait while the single one is read.
        send(&far, to, 1);
        send(&far, to, 3);
        let lengths = read(&mut reader, 4);
        assert_eq!(lengths, [DATAGRAM_BYTES; 4], "after {before} single ones");
    }
    assert!(
        separate_count > 0,
        "the kernel joins none where none are joined"
    );
}

/// Whoever knows the ports can send, and is read away as fast as others, so that his datagrams do
/// not fill the buffers; but he does not decide where the next look is.
#[test]
fn strangers_neither_stay_in_the_way_nor_decide_where_the_next_look_is() {
    let settings = with_key();
    let stranger = local();
    let piece = (0..=u8::MAX).find(|first| Piece::is_one(&[*first]));
    for bytes in [vec![7], vec![piece.expect("a mark")]] {
        let (mut reader, addresses) = eight_with(&settings);
        for look in 1..8 {
            for _ in 0..40 {
                outbound::send_bytes(&stranger, addresses[3], &bytes, 0).expect("sent");
            }
            assert_eq!(receive(&mut reader), 0);
            assert_eq!(reader.turned_away(), look * 40);
            assert_eq!(reader.polling.next(), Look::Everywhere);
        }
    }
}

/// Else whoever sends without end would keep the reader.
#[test]
fn a_socket_gives_so_much_in_one_look_and_the_rest_in_the_next() {
    let far = local();
    let (mut reader, addresses) = eight();
    for _ in 0..200 {
        outbound::send_bytes(&far, addresses[5], &[7], 0).expect("sent");
    }
    let most = RECEIVE_COUNT + 8 * SHORT_COUNT;
    assert!(most * (DATAGRAM_COST_BYTES + 1) >= SOCKET_BYTES);
    assert!((most - SHORT_COUNT) * (DATAGRAM_COST_BYTES + 1) < SOCKET_BYTES);
    assert_eq!(receive(&mut reader), most);
    assert_eq!(reader.call_count, 1 + 9);
    assert_eq!(receive(&mut reader), 200 - most);
}

/// Two short datagrams and long ones behind them: one call finds so many bytes that the sockets
/// after it give less.
#[test]
fn all_sockets_together_give_so_much_in_one_look() {
    const LONG_BYTES: usize = 30_000;
    const LONG_COUNT: usize = 6;
    let far = local();
    let (mut reader, addresses) = eight();
    for to in &addresses {
        for length_bytes in [vec![1; RECEIVE_COUNT], vec![LONG_BYTES; LONG_COUNT]].concat() {
            outbound::send_bytes(&far, *to, &vec![7; length_bytes], 0).expect("sent");
        }
    }
    let all_of = RECEIVE_COUNT + LONG_COUNT;
    let full_count = LOOK_BYTES.div_ceil(LONG_BYTES * LONG_COUNT);
    let least = full_count * all_of + (PORT_COUNT - full_count) * RECEIVE_COUNT;
    assert!(least < PORT_COUNT * all_of);
    assert_eq!(receive(&mut reader), least);
    let calls = 1 + full_count * 2 + (PORT_COUNT - full_count);
    assert_eq!(reader.call_count, calls as u64);
    let rest = reader.look_for_rest(&mut |_, _| {}).datagram_count;
    assert_eq!(least + rest, PORT_COUNT * all_of);
}

/// The thread that looked may have lost its processor since.
#[test]
fn what_came_after_a_look_in_vain_is_read_before_timers_are_asked() {
    for connects in [false, true] {
        let far = local();
        let (mut reader, addresses) = eight();
        if connects {
            reader
                .sockets
                .settle(0, far.local_address().expect("address"));
        }
        assert_eq!(receive(&mut reader), 0);
        for to in &addresses {
            send(&far, *to, 1);
        }
        let rest = reader.look_for_rest(&mut |_, _| {}).datagram_count;
        assert_eq!(rest, PORT_COUNT, "connected: {connects}");
    }
}

/// Whoever sends without end would else keep the timers.
#[test]
fn so_much_of_a_socket_is_read_before_timers_are_asked() {
    let of_round = RECEIVE_COUNT + 8 * SHORT_COUNT;
    // The first two say that several wait in the connected one.
    for (connects, most) in [
        (false, REST_ROUNDS * of_round),
        (true, REST_ROUNDS * of_round + 2),
    ] {
        for sent in [most - 1, most, most + 1, 2 * most] {
            let far = local();
            let (mut reader, addresses) = eight();
            if connects {
                reader
                    .sockets
                    .settle(0, far.local_address().expect("address"));
            }
            // More than a round reads, and less than a socket holds.
            let mut left = sent;
            let mut send = |count: usize| {
                for _ in 0..count.min(left) {
                    outbound::send_bytes(&far, addresses[0], &[7], 0).expect("sent");
                    left -= 1;
                }
            };
            send(200);
            let rest = reader.look_for_rest(&mut |_, _| send(1)).datagram_count;
            assert_eq!(rest, sent.min(most), "{sent}, connected: {connects}");
        }
    }
}

#[test]
fn who_comes_back_reads_what_has_come_meanwhile_although_one_datagram_was_expected() {
    for connects in [false, true] {
        let far = local();
        for (is_back, expected) in [(false, 1), (true, 2 * WAITING_COUNT)] {
            let (mut reader, addresses) = settled(connects, &far);
            for to in &addresses[..2] {
                for _ in 0..WAITING_COUNT {
                    send(&far, *to, 1);
                }
            }
            looked_at(&mut reader, Instant(if is_back { 1 } else { u64::MAX / 2 }));
            assert_eq!(receive(&mut reader), expected, "connected: {connects}");
        }
    }
}

/// What lies in the others came while the reader was away.
#[test]
fn an_empty_socket_hides_nothing_in_others_from_who_comes_back() {
    for connects in [false, true] {
        let far = local();
        let (mut reader, addresses) = settled(connects, &far);
        looked_at(&mut reader, Instant(1));
        for _ in 0..WAITING_COUNT {
            send(&far, addresses[1], 1);
        }
        assert_eq!(receive(&mut reader), 0, "where one is expected is none");
        reader.on_clock(Instant(clock::monotonic_ns()));
        send(&far, addresses[0], 1);
        let count = receive(&mut reader);
        assert_eq!(count, 1 + WAITING_COUNT, "connected: {connects}");
    }
}

#[test]
fn a_strangers_datagram_hides_nothing_from_who_comes_back() {
    let stranger = local();
    let (mut reader, addresses) = eight_with(&with_key());
    for _ in 0..6 {
        reader.polling.found(0, 1);
    }
    assert_eq!(reader.polling.next(), Look::At(0));
    for to in &addresses[..2] {
        for _ in 0..WAITING_COUNT {
            send(&stranger, *to, 1);
        }
    }
    looked_at(&mut reader, Instant(1));
    assert_eq!(receive(&mut reader), 0);
    assert_eq!(reader.turned_away(), 2 * WAITING_COUNT as u64);
}

/// One thread sleeps on the wait set, and others make progress: neither their calls nor a socket
/// that they make keep a datagram from the one that sleeps.
#[test]
fn whoever_sleeps_is_woken_by_the_connected_socket_whatever_other_threads_do_meanwhile() {
    for is_made_first in [true, false] {
        let far = local();
        let (mut reader, addresses) = eight();
        let way = far.local_address().expect("address");
        if is_made_first {
            reader.sockets.settle(0, way);
        }
        reader.sockets.on_sleep();
        if !is_made_first {
            reader.sockets.settle(0, way);
        }
        for _ in 0..200 {
            assert_eq!(receive(&mut reader), 0);
        }
        send(&far, addresses[0], 1);
        let descriptor = reader.sockets.wait_set.descriptor();
        assert!(wait_readable(descriptor, 10_000), "first: {is_made_first}");
        assert_eq!(receive(&mut reader), 1);
        reader.sockets.on_wake();
        for _ in 0..200 {
            receive(&mut reader);
        }
        send(&far, addresses[0], 1);
        assert!(
            !wait_readable(descriptor, 0),
            "while nobody sleeps it is in no wait set"
        );
    }
}

/// Nobody would hear of what comes through it.
#[test]
fn a_connected_socket_that_the_wait_set_does_not_take_is_given_up() {
    let far = local();
    let (mut reader, addresses) = settled(true, &far);
    // The set takes nothing twice.
    let connected = reader.sockets.at(PORT_COUNT).as_fd();
    reader.sockets.wait_set.add(connected).expect("taken");
    reader.sockets.on_sleep();
    assert_eq!(reader.sockets.count(), PORT_COUNT);
    let descriptor = reader.sockets.wait_set.descriptor();
    send(&far, addresses[0], 1);
    assert!(wait_readable(descriptor, 10_000));
    assert_eq!(receive(&mut reader), 1);
}

/// As a child after fork(2) does: nobody reads it there.
#[test]
fn a_connected_socket_that_somebody_else_holds_open_keeps_nothing_when_another_takes_its_place() {
    let (far, next) = (local(), local());
    let (mut reader, addresses) = settled(true, &far);
    reader.sockets.on_sleep();
    let connected = reader.sockets.at(PORT_COUNT).as_fd();
    let _held = connected.try_clone_to_owned().expect("a descriptor");
    send(&far, addresses[0], 1);
    reader
        .sockets
        .settle(0, next.local_address().expect("address"));
    let descriptor = reader.sockets.wait_set.descriptor();
    assert!(!wait_readable(descriptor, 0), "the set has left it");
    send(&far, addresses[0], 1);
    assert!(wait_readable(descriptor, 10_000), "it came to the port");
    let count: usize = (0..10).map(|_| receive(&mut reader)).sum();
    assert_eq!(count, 1);
}

/// What one waits longer than the next would else count as the network's.
#[test]
fn of_several_datagrams_that_waited_in_the_connected_socket_each_has_a_wait_of_its_own() {
    let far = local();
    let (mut reader, addresses) = settled(true, &far);
    for _ in 0..WAITING_COUNT {
        send(&far, addresses[0], 1);
    }
    looked_at(&mut reader, Instant(1));
    let mut waits = Vec::new();
    reader.receive(&mut |now_ns, incoming| {
        if let Incoming::Datagram(origin, _) = incoming {
            waits.push((now_ns, origin.waited_ns));
        }
    });
    assert_eq!(waits.len(), WAITING_COUNT);
    assert!(waits.iter().all(|(_, waited_ns)| *waited_ns > Nanos::ZERO));
    // Those that one call has found.
    let found_at_once = waits.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let falls = found_at_once
        .map(|pair| pair[0].1 > pair[1].1)
        .collect::<Vec<_>>();
    assert!(
        falls.len() > WAITING_COUNT / 2 && falls.iter().all(|falls| *falls),
        "{waits:?}"
    );
}

#[test]
fn one_datagram_in_the_connected_socket_is_single_although_its_reader_was_away() {
    let (one, other) = (local(), local());
    let (mut reader, addresses) = settled(false, &one);
    reader
        .sockets
        .settle(0, one.local_address().expect("address"));
    send(&one, addresses[0], 1);
    for _ in 0..WAITING_COUNT {
        send(&other, addresses[0], 1);
    }
    looked_at(&mut reader, Instant(1));
    assert_eq!(receive(&mut reader), 1 + WAITING_COUNT);
    assert!(!reader.sockets.connected_polling.is_joined());
}
