// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which lanes get more memory, and when: the rules of attached.rs (wide lanes) and contact.rs
//! (pages before they are needed), between transports of this process.

use weft_contract::*;
use weft_memory::UserBuffer;

use crate::contact::outbound::{Outbound, WIDE_LANES};
use crate::transport::traffic::Traffic;
use crate::transports_for_tests::{Sink, open_with, tagged};
use crate::wait::node::Node;
use crate::{Settings, Transport};

/// Long payload after which a lane is made wide, as docs/lab/2026-11-21-wide-lanes.md has it.
const WIDEN_AFTER_BYTES: usize = 512 << 10;

/// One transport in contact with several others.
struct Hub {
    hub: Transport,
    others: Vec<Transport>,
}

impl Hub {
    /// With what the launcher would have said: whether ranks share cores, and whether they are few.
    fn new(others_count: u32, shares_cores: bool, has_few_ranks: bool) -> Self {
        let open = || open_with(Settings::default());
        let (mut hub, others): (_, Vec<Transport>) =
            (open(), (0..others_count).map(|_| open()).collect());
        hub.traffic.contacts.own.set_node(Node {
            shares_cores,
            has_few_ranks,
        });
        for (remote, other) in (0..).map(RemoteId).zip(&others) {
            hub.add_remote(remote, other.local_address());
        }
        let mut hub = Self { hub, others };
        (0..others_count).for_each(|remote| hub.send(remote, 8));
        hub
    }

    fn send(&mut self, remote: u32, length_bytes: usize) {
        let op = SendOp {
            remote: RemoteId(remote),
            inject: true,
            ..tagged(7, CompletionLevel::Transmit)
        };
        let payload = UserBuffer::leaked(&[length_bytes]);
        while let Err(why) = self.hub.post_send(&op, &payload) {
            assert_eq!(why, PostError::Busy);
            self.hub.progress(&mut Sink);
            self.others[remote as usize].progress(&mut Sink);
        }
        self.others[remote as usize].progress(&mut Sink);
    }

    fn lane(&mut self, remote: u32) -> &Outbound {
        let remote = self.hub.traffic.contacts.remote_mut(RemoteId(remote));
        remote.attached().expect("in contact").lane()
    }

    /// How many messages of a length it takes until a lane is wide; none if it takes more than
    /// `most`.
    fn messages_until_wide(&mut self, length_bytes: usize, most: usize) -> Option<usize> {
        (1..=most).find(|_| {
            let Traffic {
                contacts, sender, ..
            } = &mut self.hub.traffic;
            sender.note_long(contacts, RemoteId(0), length_bytes);
            self.lane(0).is_wide()
        })
    }
}

#[test]
fn the_first_lanes_that_carry_much_long_payload_become_wide_and_no_more_of_them() {
    let mut hub = Hub::new(WIDE_LANES + 1, false, false);
    for remote in 0..=WIDE_LANES {
        for sent in 0..=WIDEN_AFTER_BYTES / 4096 {
            assert!(!hub.lane(remote).is_wide(), "after {sent} messages");
            hub.send(remote, 4096);
        }
        assert_eq!(hub.lane(remote).is_wide(), remote < WIDE_LANES);
        assert_eq!(
            hub.lane(remote).is_warm(),
            remote < WIDE_LANES,
            "its pages are made with it"
        );
    }
    assert_eq!(hub.hub.traffic.sender.wide_lanes(), WIDE_LANES);
}

#[test]
fn a_wide_lane_that_ends_with_its_remote_leaves_its_place_to_the_next() {
    let mut hub = Hub::new(WIDE_LANES + 1, false, false);
    for remote in 0..=WIDE_LANES {
        (0..=WIDEN_AFTER_BYTES / 4096).for_each(|_| hub.send(remote, 4096));
    }
    assert!(!hub.lane(WIDE_LANES).is_wide());
    let (traffic, why) = (&mut hub.hub.traffic, TransferError::RemoteLost);
    traffic.lose(RemoteId(0), why, &mut Sink);
    hub.send(WIDE_LANES, 4096);
    assert!(hub.lane(WIDE_LANES).is_wide());
}

#[test]
fn ranks_that_share_cores_keep_narrow_lanes() {
    let mut hub = Hub::new(1, true, false);
    assert_eq!(hub.messages_until_wide(8192, 1000), None);
    assert_eq!(hub.hub.traffic.sender.wide_lanes(), 0);
}

#[test]
fn payload_counts_in_full_from_2_kib_a_sixteenth_from_256_bytes_and_below_not_at_all() {
    let messages =
        |length_bytes| Hub::new(1, false, false).messages_until_wide(length_bytes, 40_000);
    assert_eq!(messages(255), None);
    assert_eq!(messages(256), Some(16 * WIDEN_AFTER_BYTES / 256 + 1));
    assert_eq!(messages(2047), Some(WIDEN_AFTER_BYTES / (2047 / 16) + 1));
    assert_eq!(messages(2048), Some(WIDEN_AFTER_BYTES / 2048 + 1));
}

#[test]
fn payload_from_256_bytes_counts_in_full_where_the_lane_has_its_pages() {
    let mut hub = Hub::new(1, false, true);
    assert_eq!(
        hub.messages_until_wide(256, 40_000),
        Some(WIDEN_AFTER_BYTES / 256 + 1)
    );
}

#[test]
fn few_ranks_have_the_pages_of_as_many_lanes_as_may_be_wide_from_first_contact_on() {
    for has_few_ranks in [false, true] {
        let mut hub = Hub::new(WIDE_LANES + 1, false, has_few_ranks);
        for remote in 0..=WIDE_LANES {
            let expected = has_few_ranks && remote < WIDE_LANES;
            assert_eq!(hub.lane(remote).is_warm(), expected, "remote {remote}");
            assert!(!hub.lane(remote).is_wide(), "pages alone make no lane wide");
        }
    }
}
