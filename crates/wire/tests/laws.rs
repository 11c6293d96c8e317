// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of the formats: what is written is read back; what is not a packet is told apart, and
//! never panics.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use weft_wire::marks::Marks;
use weft_wire::time::Instant;
use weft_wire::*;

fn message(length: u64) -> impl Strategy<Value = Message> {
    (
        any::<u64>(),
        any::<Option<u64>>(),
        any::<Option<u64>>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(move |(id, tag, cq_data, wants_receipt, service)| Message {
            id,
            tag,
            cq_data,
            length_bytes: length,
            wants_receipt,
            is_service: service && tag.is_some(),
        })
}

fn path() -> impl Strategy<Value = Path> {
    (0u8..64).prop_map(|number| Path::from_number(number).unwrap())
}

fn header() -> impl Strategy<Value = Header> {
    let numbers = (
        any::<u32>(),
        1..=u64::MAX,
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (path(), flags, numbers).prop_map(|(path, flags, numbers)| Header {
        path,
        acknowledge_now: flags.0,
        retransmission: flags.1,
        sealed: flags.2,
        ect: flags.3,
        context: numbers.0,
        source: numbers.1,
        target: numbers.2,
        sent_ns: Instant(numbers.3),
        sequence: numbers.4,
        further_count: 0,
    })
}

fn further() -> impl Strategy<Value = Vec<IpAddr>> {
    let address = prop_oneof![
        (1u8..=223, any::<[u8; 3]>())
            .prop_filter("loopback", |(first, _)| *first != 127)
            .prop_map(|(first, [a, b, c])| IpAddr::from([first, a, b, c])),
        any::<[u8; 15]>().prop_map(|rest| {
            let mut octets = [0xfd; 16];
            octets[1..].copy_from_slice(&rest);
            IpAddr::from(octets)
        }),
    ];
    proptest::collection::vec(address, 0..=3)
}

fn hello() -> impl Strategy<Value = Hello> {
    let numbers = (1..=u32::MAX, any::<u32>(), 1200..=u16::MAX, any::<u64>());
    let ports = proptest::collection::vec(1..=u16::MAX, 1..=8);
    (numbers, ports, further()).prop_map(|(numbers, list, further)| {
        let mut ports = [0; 8];
        ports[..list.len()].copy_from_slice(&list);
        let dealt = PortAddresses::dealt(&further);
        Hello {
            context: numbers.0,
            features: numbers.1,
            datagram_bytes: numbers.2,
            ports,
            port_count: list.len() as u8,
            // Ports that are not there are nowhere.
            addresses: (list.len()..8).fold(dealt, PortAddresses::with_first),
            receive_limit: numbers.3,
            cookie: numbers.3.rotate_left(9),
            address: IpAddr::from(numbers.0.to_be_bytes()),
            heartbeat_port: numbers.2,
        }
    })
}

fn marks() -> impl Strategy<Value = Marks> {
    let counts = (any::<u32>(), any::<u32>());
    (any::<u64>(), any::<u64>(), counts).prop_map(|(paths_marked, paths_mangled, (one, two))| {
        Marks {
            paths_marked,
            paths_mangled,
            ce_count: one.max(two),
            in_row_count: one.min(two),
        }
    })
}

fn acknowledgement() -> impl Strategy<Value = Acknowledgement> {
    let numbers = (
        0..u64::MAX / 2,
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
    );
    let small = (path(), 0u8..128, any::<u8>());
    let limits = (any::<u64>(), any::<u64>(), any::<u64>());
    (
        numbers,
        small,
        limits,
        proptest::collection::vec(any::<u64>(), 0..=16),
        proptest::option::of(marks()),
    )
        .prop_map(|(numbers, small, limits, words, marks)| {
            let mut bitmap = [0; BITMAP_WORDS];
            bitmap[..words.len()].copy_from_slice(&words);
            Acknowledgement {
                cumulative: numbers.0,
                received_bytes: numbers.1,
                echo_sent_ns: Instant(numbers.2),
                echo_sequence: numbers.3,
                hold_ns: numbers.4,
                echo_path: small.0,
                penalty: small.1,
                duplicate_count: small.2,
                paths_heard: limits.0,
                receive_limit: limits.1,
                credit_limit: limits.2,
                bitmap,
                marks,
            }
        })
}

fn home() -> impl Strategy<Value = SocketAddr> {
    let v4 = (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from);
    let v6 = (any::<[u8; 15]>(), any::<u16>()).prop_map(|(rest, port)| {
        let mut octets = [0xfd; 16];
        octets[1..].copy_from_slice(&rest);
        SocketAddr::from((octets, port))
    });
    prop_oneof![v4, v6]
}

fn body_and_payload() -> impl Strategy<Value = (Body, Vec<u8>)> {
    let payload = proptest::collection::vec(any::<u8>(), 1..200);
    payload.prop_flat_map(|payload| {
        let length = payload.len() as u64;
        let kept = payload.clone();
        let with_payload = prop_oneof![
            message(length).prop_map(Body::Eager),
            (message(length + 9), 0u64..=9).prop_map(|(message, offset_bytes)| {
                Body::Segment(Segment {
                    message,
                    offset_bytes,
                })
            }),
            (any::<u32>(), 0..u64::MAX - 300).prop_map(|(landing, offset_bytes)| Body::Data(
                Data {
                    landing,
                    offset_bytes
                }
            )),
        ]
        .prop_map(move |body| (body, kept.clone()));
        let without = prop_oneof![
            any::<u64>().prop_flat_map(message).prop_map(Body::Offer),
            (any::<u64>(), any::<u32>(), any::<u64>()).prop_map(
                |(message_id, landing, length_bytes)| {
                    Body::Accept(Accept {
                        message_id,
                        landing,
                        length_bytes,
                    })
                }
            ),
            any::<u64>().prop_map(|message_id| Body::Receipt(Receipt { message_id })),
            any::<u64>().prop_map(|message_id| {
                Body::Refusal(Refusal {
                    message_id,
                    reason: Reason::Canceled,
                })
            }),
            Just(Body::Probe),
            Just(Body::Acknowledgement),
            (1..=u64::MAX, any::<u64>(), home()).prop_map(|(incarnation, echo_sent_ns, home)| {
                Body::Stale(Stale {
                    incarnation,
                    echo_sent_ns: Instant(echo_sent_ns),
                    home,
                })
            }),
            (any::<u64>(), any::<u64>(), home()).prop_map(|(echo_sent_ns, cookie, home)| {
                Body::Greeting(Greeting {
                    echo_sent_ns: Instant(echo_sent_ns),
                    cookie,
                    home,
                })
            }),
            (1..=u64::MAX, any::<u64>(), home()).prop_map(|(incarnation, echo_sent_ns, home)| {
                Body::Alive(Alive {
                    incarnation,
                    echo_sent_ns: Instant(echo_sent_ns),
                    home,
                })
            }),
        ]
        .prop_map(|body| (body, Vec::new()));
        prop_oneof![with_payload, without]
    })
}

fn datagram(packet: &Packet<'_>) -> Vec<u8> {
    let mut head = Head::new();
    packet.write(&mut head);
    assert_eq!(head.is_retransmission(), packet.header.retransmission);
    [head.as_bytes(), packet.payload].concat()
}

fn any_datagram() -> impl Strategy<Value = Vec<u8>> {
    let sections = (
        proptest::option::of(hello()),
        acknowledgement(),
        any::<bool>(),
    );
    (header(), sections, body_and_payload()).prop_map(
        |(mut header, (hello, acknowledgement, wanted), (body, payload))| {
            if !body.kind().is_reliable() {
                header.sequence = 0;
            }
            let wanted = wanted || body.kind() == Kind::Acknowledgement;
            datagram(&Packet {
                header,
                hello,
                acknowledgement: wanted.then_some(acknowledgement),
                body,
                payload: &payload,
            })
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(bytes in any_datagram()) {
        let packet = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(datagram(&packet), bytes);
    }

    #[test]
    fn a_packet_cut_short_is_never_read_as_the_same_packet(
        bytes in any_datagram(),
        cut in any::<prop::sample::Index>(),
    ) {
        let short = &bytes[..cut.index(bytes.len())];
        // A cut may leave a valid packet only where the payload has no length of its own.
        match Packet::parse(short) {
            Ok(packet) => prop_assert!(matches!(packet.body, Body::Segment(_) | Body::Data(_))),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Packet::parse(&bytes);
    }

    #[test]
    fn changed_packets_never_panic_and_what_parses_is_written_alike(
        mut bytes in any_datagram(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        bytes[24..32].fill(0);
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert_eq!(datagram(&packet), bytes);
        }
    }

    #[test]
    fn an_acknowledgement_covers_what_its_bits_say(section in acknowledgement(), at in 0u64..1100) {
        let sequence = section.cumulative + at;
        let expected = at > 0 && at <= 1024 && {
            let bit = at - 1;
            section.bitmap[(bit / 64) as usize] >> (bit % 64) & 1 == 1
        };
        prop_assert_eq!(section.covers(sequence), expected);
        prop_assert!(!section.covers(section.end()));
        prop_assert!(section.end() == section.cumulative || section.covers(section.end() - 1));
    }
}

#[test]
fn errors_name_the_field_the_value_and_the_rule() {
    let error = Packet::parse(&[0x21]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not an SRD packet: version is 2, but this Weft speaks version 6"
    );
    let error = Packet::parse(&[0x6f, 0]).unwrap_err();
    assert_eq!((error.field, error.value), ("kind", 15));
    let error = Packet::parse(&[0x61, 0, 64]).unwrap_err();
    assert_eq!((error.field, error.value), ("path", 64));
    let error = Packet::parse(&[0x61, 0, 1]).unwrap_err();
    assert_eq!((error.field, error.value), ("further sequences", 0));
}

/// A packet with everything that a packet can have.
fn with_addresses(addresses: PortAddresses) -> Packet<'static> {
    let ports = [1; 8];
    Packet {
        header: Header {
            path: Path::from_ports(7, 7),
            acknowledge_now: true,
            retransmission: true,
            sealed: true,
            ect: true,
            context: 1,
            source: 1,
            target: 1,
            sent_ns: Instant(1),
            sequence: 1,
            further_count: 0,
        },
        hello: Some(Hello {
            context: 1,
            features: 0,
            datagram_bytes: 1400,
            ports,
            port_count: 8,
            addresses,
            receive_limit: 0,
            cookie: 1,
            address: IpAddr::from([10, 0, 0, 9]),
            heartbeat_port: 7,
        }),
        acknowledgement: Some(Acknowledgement {
            cumulative: 0,
            received_bytes: 0,
            echo_sent_ns: Instant::START,
            echo_sequence: 0,
            hold_ns: 0,
            echo_path: Path::from_ports(0, 0),
            penalty: 0,
            duplicate_count: 0,
            paths_heard: 0,
            receive_limit: 0,
            credit_limit: 0,
            bitmap: [1; BITMAP_WORDS],
            marks: Some(Marks {
                paths_marked: 1,
                paths_mangled: 2,
                ce_count: 3,
                in_row_count: 1,
            }),
        }),
        body: Body::Segment(Segment {
            message: Message {
                id: 0,
                tag: Some(1),
                cq_data: Some(1),
                length_bytes: 1,
                wants_receipt: true,
                is_service: true,
            },
            offset_bytes: 0,
        }),
        payload: &[1],
    }
}

#[test]
fn the_longest_head_fits() {
    let packet = with_addresses(PortAddresses::dealt(&[IpAddr::from([10, 0, 0, 1]); 3]));
    assert_eq!(datagram(&packet).len(), weft_wire::bytes::HEAD_BYTES + 1);
}

#[test]
fn further_addresses_that_no_host_can_have_alone_are_refused() {
    let written = |address: &str| {
        let addresses = PortAddresses::dealt(&[address.parse().unwrap()]);
        datagram(&with_addresses(addresses))
    };
    for good in ["10.0.1.2", "fd00::7"] {
        let bytes = written(good);
        let hello = Packet::parse(&bytes).unwrap().hello.unwrap();
        let given: Vec<_> = (0..8)
            .map(|port| hello.addresses.further_of(port))
            .collect();
        let good = Some(good.parse().unwrap());
        assert_eq!(given, [None, good, None, good, None, good, None, good]);
    }
    for bad in [
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "ff02::1",
    ] {
        let error = Packet::parse(&written(bad)).unwrap_err().to_string();
        assert!(error.contains("further address is"), "{bad}: {error}");
    }
    let bytes = written("10.0.1.2");
    for (at, value, named) in [
        (48 + 11, 4, "further address count"),
        (48 + 28, 0x20, "address of a port"),
        (48 + 28, 0x11, "address of a port"),
    ] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        let error = Packet::parse(&bytes).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
