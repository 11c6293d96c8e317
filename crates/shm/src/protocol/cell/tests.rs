// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each kind of cell comes back as it was sent, and what a kind does not permit is refused.

use super::*;

/// As a lane carries it: the place of the payload stands in the third word.
fn carry(carrier: Carrier) -> (Head, Words) {
    let (head, [tag, data, fourth, fifth, sixth]) = carrier.encode();
    let place = 5 << 32 | u64::from(head.length_bytes);
    (head, [tag, data, place, fourth, fifth, sixth, 0])
}

fn headers() -> impl Iterator<Item = MatchHeader> {
    let classes = [Class::Message, Class::Tagged, Class::Service];
    let all = classes.map(|class| [None, Some(u64::MAX)].map(|cq_data| (class, cq_data)));
    all.into_iter()
        .flatten()
        .map(|(class, cq_data)| MatchHeader {
            class,
            tag: 0x0123_4567_89AB_CDEF,
            cq_data,
        })
}

fn rts(header: MatchHeader) -> Rts {
    Rts {
        header,
        send_id: 7,
        length_bytes: MESSAGE_BYTES,
        address: Some(1 << 47 | 9),
        is_shared: true,
        wants_receipt: true,
    }
}

fn comes_back(carrier: Carrier) {
    let (head, words) = carry(carrier);
    assert_eq!(Cell::parse(head, &words), Ok(Cell::Carrier(carrier)));
}

fn is_refused(cell: (Head, Words), value: u64) {
    let (head, words) = cell;
    let refused = Cell::parse(head, &words).expect_err("it cannot be");
    assert_eq!(refused.value, value, "{}", refused.what);
}

#[test]
fn inline_messages_keep_what_they_are_matched_by() {
    for header in headers() {
        let head = inline_head(header.class, header.cq_data.is_some(), 8);
        assert_eq!((head.kind, head.length_bytes), (INLINE, 8));
        assert!(is_inline(head));
        let read = MatchHeader::read(head.flags, header.tag, header.data());
        assert_eq!(read, header);
    }
}

#[test]
fn eager_messages_and_their_pieces_come_back() {
    for header in headers() {
        for receipt in [None, Some(0), Some(u64::MAX)] {
            let of = |length_bytes| Eager {
                header,
                length_bytes,
                receipt,
            };
            comes_back(Carrier::Eager(of(EAGER_BYTES as u32)));
            comes_back(Carrier::Stream(of(STREAM_BYTES as u32)));
        }
    }
    comes_back(Carrier::Piece(16_384));
    comes_back(Carrier::Data(u64::MAX, 1));
}

#[test]
fn described_messages_come_back() {
    for header in headers() {
        let whole = rts(header);
        let private = Rts {
            is_shared: false,
            ..whole
        };
        let scattered = Rts {
            address: None,
            wants_receipt: false,
            ..private
        };
        // An address is one by its flag: 0 is an address as well.
        let at_zero = Rts {
            address: Some(0),
            ..private
        };
        for rts in [whole, private, scattered, at_zero] {
            comes_back(Carrier::EarlyRts(rts, STREAM_BYTES as u32));
            let control = Control::Rts(rts);
            let (head, words) = control.encode();
            assert_eq!(Cell::parse(head, &words), Ok(Cell::Control(control)));
        }
    }
}

#[test]
fn answers_come_back() {
    let by = [
        Transfer::Pipe {
            pipe: PIPE_COUNT - 1,
            first_chunk: PIPE_CHUNKS - 1,
            is_non_temporal: true,
        },
        Transfer::Lane { number: u64::MAX },
        Transfer::Copy {
            pipe: 0,
            ticket: 3,
            address: 0x7F00_0000_0000,
        },
    ];
    let cts = by.map(|by| {
        Control::Cts(Cts {
            send_id: 12,
            bytes: 4096..u64::MAX,
            by,
        })
    });
    let fin = [false, true].map(|is_mapped| {
        Control::Fin(Fin {
            send_id: 1,
            is_mapped,
        })
    });
    for control in cts.into_iter().chain(fin).chain([Control::Bye]) {
        let (head, words) = control.encode();
        assert_eq!(Cell::parse(head, &words), Ok(Cell::Control(control)));
    }
}

#[test]
fn the_first_cell_of_a_message_and_what_needs_an_answer_are_known() {
    let header = headers().next().expect("one");
    let eager = Eager {
        header,
        length_bytes: 1,
        receipt: None,
    };
    let receipt = Eager {
        receipt: Some(1),
        ..eager
    };
    let of = |carrier: Carrier| {
        let begins = Cell::Carrier(carrier).begins_message();
        (begins, needs_answer(carrier.encode().0))
    };
    assert_eq!(of(Carrier::Eager(eager)), (true, false));
    assert_eq!(of(Carrier::Stream(receipt)), (true, true));
    assert_eq!(of(Carrier::EarlyRts(rts(header), 1)), (true, true));
    assert_eq!(of(Carrier::Piece(1)), (false, false));
    assert_eq!(of(Carrier::Data(1, 1)), (false, false));
    let (head, _) = Control::Rts(rts(header)).encode();
    assert!(needs_answer(head) && Cell::Control(Control::Rts(rts(header))).begins_message());
    assert!(!Cell::Control(Control::Bye).begins_message());
}

#[test]
fn lengths_beyond_those_of_a_kind_are_refused() {
    let header = headers().next().expect("one");
    let of = |length_bytes| Eager {
        header,
        length_bytes,
        receipt: None,
    };
    let (eager, stream) = (EAGER_BYTES as u32 + 1, STREAM_BYTES as u32 + 1);
    is_refused(carry(Carrier::Eager(of(eager))), eager.into());
    is_refused(carry(Carrier::Stream(of(stream))), stream.into());
    let long = Rts {
        length_bytes: MESSAGE_BYTES + 1,
        ..rts(header)
    };
    is_refused(Control::Rts(long).encode(), MESSAGE_BYTES + 1);
    for early_bytes in [0, stream] {
        let early = Carrier::EarlyRts(rts(header), early_bytes);
        is_refused(carry(early), early_bytes.into());
    }
    let short = Rts {
        length_bytes: 9,
        ..rts(header)
    };
    is_refused(carry(Carrier::EarlyRts(short, 10)), 10);
    // Inline messages are taken before: what comes here did not fit the lane.
    is_refused((inline_head(header.class, false, 900), [0; 7]), 900);
}

#[test]
fn words_that_name_nothing_are_refused() {
    let head = |kind, flags| Head {
        kind,
        flags,
        length_bytes: 0,
    };
    is_refused((head(0, 0), [0; 7]), 0);
    is_refused((head(BYE + 1, 0), [0; 7]), BYE as u64 + 1);
    is_refused((head(RTS, FLAG_SHARED), [0; 7]), FLAG_SHARED.into());
    is_refused((head(FIN, 0), [0, 2, 0, 0, 0, 0, 0]), 2);
    for kind in [CTS_PIPE, CTS_LANE, CTS_COPY] {
        is_refused((head(kind, 0), [0, 8, 8, 0, 0, 0, 0]), 8);
        is_refused((head(kind, 0), [0, 9, 8, 0, 0, 0, 0]), 8);
    }
    for kind in [CTS_PIPE, CTS_COPY] {
        let pipe = PIPE_COUNT as u64;
        is_refused((head(kind, 0), [0, 0, 8, pipe, 0, 0, 0]), pipe);
    }
    let chunk = PIPE_CHUNKS as u64;
    is_refused((head(CTS_PIPE, 0), [0, 0, 8, 0, chunk, 0, 0]), chunk);
    is_refused((head(CTS_PIPE, 0), [0, 0, 8, 0, 0, 2, 0]), 2);
}
