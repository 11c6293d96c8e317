// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tools see in an endpoint's region is what it carried, counted by remote and by protocol.

#[path = "shared/transports.rs"]
mod transports;
mod taker {
    use std::net::SocketAddr;

    use weft_contract::*;
    use weft_memory::{BytesView, UserBuffer};

    /// Takes everything; counts what ended.
    #[derive(Default)]
    pub struct Taker {
        pub ended: u64,
    }

    impl Owner for Taker {
        fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
            self.ended += 1;
            true
        }
        fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
            let buffer = UserBuffer::leaked(&[envelope.length_bytes as usize]);
            Some(Landing {
                token: LandingToken(0),
                buffer,
            })
        }
        fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
            outcome.expect("it lands");
            self.ended += 1;
        }
        fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
            outcome.expect("it is sent");
        }
        fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
        fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
            RemoteId(0)
        }
    }
}

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use taker::Taker;
use transports::{open_pair, region_of, tagged};
use weft_contract::*;
use weft_memory::UserBuffer;
use weft_ring::snapshot::{SNAPSHOT_BYTES, Snapshot};
use weft_shm::{Protocol, Settings, SingleCopy, Transport};

fn snapshot(transport: &Transport) -> Snapshot {
    let region = region_of(transport).expect("region");
    let mut bytes = vec![0; SNAPSHOT_BYTES];
    region.read_exact_at(&mut bytes, 0).expect("read");
    Snapshot::read(&bytes).expect("a region of ours")
}

#[test]
fn counts_by_remote_and_by_protocol_are_published_within_milliseconds() {
    let [mut here, mut there] = open_pair(&Settings {
        single_copy: SingleCopy::Never,
        ..Settings::default()
    });
    let (mut sender, mut receiver) = (Taker::default(), Taker::default());
    let lengths = [8, 8, 8, 3000, 60_000, 300_000];
    for (index, &length) in lengths.iter().enumerate() {
        let op = tagged(index as u64, CompletionLevel::Transmit);
        let payload = UserBuffer::leaked(&[length]);
        while here.post_send(&op, &payload).is_err() {
            here.progress(&mut sender);
        }
        while receiver.ended <= index as u64 {
            there.progress(&mut receiver);
            here.progress(&mut sender);
        }
    }
    let end = Instant::now() + Duration::from_secs(60);
    let all_bytes = lengths.iter().sum::<usize>() as u64;
    let published = |transport: &Transport| snapshot(transport).counters;
    while published(&there).received != [lengths.len() as u64, all_bytes] {
        there.progress(&mut receiver);
        here.progress(&mut sender);
        assert!(Instant::now() < end, "{:?}", published(&there));
    }
    let inflows = snapshot(&there).inflows;
    assert_eq!(inflows.len(), 1);
    assert_eq!(inflows[0].from.address, here.local_address());
    assert_eq!(
        (inflows[0].messages, inflows[0].bytes),
        (lengths.len() as u64, all_bytes)
    );
    while published(&here).sent[Protocol::Pipelined as usize] == [0, 0] {
        here.progress(&mut sender);
        assert!(Instant::now() < end, "{:?}", published(&here));
    }
    let sent = published(&here).sent;
    // The message that made contact found no lane to fill a cell of.
    assert_eq!(sent[Protocol::Inline as usize], [2, 16]);
    assert_eq!(sent[Protocol::Eager as usize], [2, 3008]);
    assert_eq!(sent[Protocol::Streamed as usize], [1, 60_000]);
    assert_eq!(sent[Protocol::Pipelined as usize], [1, 300_000]);
}
