// SPDX-License-Identifier: Apache-2.0 OR MIT
//! First contact with remotes that are not what they should be, and with those that cannot be
//! opened directly.

#[path = "shared/transports.rs"]
mod transports;

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use transports::{Ear, open, send_word, tagged};
use weft_contract::*;
use weft_memory::UserBuffer;
use weft_os::local_socket::{Bell, Listener};
use weft_os::process_id::ProcessId;
use weft_os::region_file::create_memfd;
use weft_ring::layout::REGION_BYTES;
use weft_ring::{Identity, Region};
use weft_shm::{OpenError, Settings, Transport};

/// A process of another build: everything in place but the header.
struct Impostor {
    address: SocketAddr,
    file: File,
    _bell: Bell,
    _listener: Listener,
    _port: UdpSocket,
}

impl Impostor {
    fn open() -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").expect("port");
        let address = port.local_addr().expect("address");
        let file = create_memfd(&format!("weft {address}"), REGION_BYTES as u64).expect("memfd");
        let identity = Identity {
            address,
            incarnation: Identity::incarnation_of(4 * u64::from(address.port())),
            process: ProcessId::default(),
        };
        Region::create(file.as_fd(), &identity, (0, 0)).expect("region");
        Self {
            address,
            file: file.into(),
            _bell: Bell::bind(&format!("weft/bell/{:016x}", identity.incarnation)).expect("bell"),
            _listener: Listener::bind(&format!("weft/{address}")).expect("listener"),
            _port: port,
        }
    }

    fn contact(&self) -> Result<Posted, PostError> {
        let mut transport = open(Settings::default());
        transport.add_remote(RemoteId(0), self.address);
        send_word(&mut transport)
    }
}

#[test]
fn another_layout_version_is_refused_by_name() {
    let impostor = Impostor::open();
    assert!(impostor.contact().is_ok(), "the same layout is accepted");
    impostor
        .file
        .write_all_at(&77u64.to_le_bytes(), 8)
        .expect("write");
    assert_eq!(
        impostor.contact(),
        Err(PostError::Failed(TransferError::VersionMismatch))
    );
}

#[test]
fn a_region_that_is_none_or_belongs_to_another_address_is_refused() {
    let impostor = Impostor::open();
    impostor.file.write_all_at(&[0; 8], 0).expect("write");
    assert_eq!(
        impostor.contact(),
        Err(PostError::Failed(TransferError::Corrupt))
    );
    let impostor = Impostor::open();
    impostor
        .file
        .write_all_at(&1u64.to_le_bytes(), 8 * 5)
        .expect("write the owner's port");
    assert_eq!(
        impostor.contact(),
        Err(PostError::Failed(TransferError::Corrupt))
    );
}

#[test]
fn a_dead_remote_and_another_host_are_told_apart() {
    for (address, why) in [
        ("127.0.0.1:9", TransferError::RemoteLost),
        ("192.0.2.1:9", TransferError::Unreachable),
    ] {
        let mut transport = open(Settings::default());
        transport.add_remote(RemoteId(0), address.parse().expect("address"));
        assert_eq!(send_word(&mut transport), Err(PostError::Failed(why)));
    }
}

/// A region in a directory has no name under /proc that we look for: its owner must hand it over.
#[test]
fn a_region_that_cannot_be_opened_is_asked_for() {
    let directory = Some(std::env::temp_dir());
    let mut owner = Ear::default();
    let mut there = open(Settings {
        directory,
        ..Settings::default()
    });
    let mut here = open(Settings::default());
    here.add_remote(RemoteId(0), there.local_address());
    let start = std::time::Instant::now();
    while send_word(&mut here) == Err(PostError::Busy) {
        here.progress(&mut owner);
        there.progress(&mut owner);
        assert!(start.elapsed().as_secs() < 60, "no contact");
    }
    assert_eq!(send_word(&mut here), Ok(Posted::Complete));
}

#[test]
fn a_directory_that_cannot_hold_regions_is_named() {
    let directory = Some("/proc/self".into());
    let error = Transport::open(Settings {
        directory,
        ..Settings::default()
    })
    .expect_err("no files there");
    assert!(matches!(error, OpenError::Directory(..)));
    assert!(error.to_string().contains("/proc/self"), "{error}");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let first = open(Settings::default());
    let again = Settings {
        address: Some(first.local_address()),
        ..Settings::default()
    };
    let error = Transport::open(again).expect_err("taken");
    assert!(
        error
            .to_string()
            .contains(&first.local_address().to_string()),
        "{error}"
    );
}

#[test]
fn an_endpoint_that_closes_inside_a_message_is_lost_and_has_broken_nothing() {
    let mut receiver = open(Settings::default());
    let mut sender = open(Settings::default());
    sender.add_remote(RemoteId(0), receiver.local_address());
    // More than a lane holds, in messages of several pieces: one is cut by the end of the lane.
    let payload = UserBuffer::leaked(&[50_000]);
    let mut nobody = Ear::default();
    for token in 0..40 {
        let _ = sender.post_send(&tagged(token, CompletionLevel::Transmit), &payload);
        sender.progress(&mut nobody);
    }
    // Room for a goodbye, and none taken by the rest of the message.
    receiver.progress(&mut nobody);
    sender.progress(&mut nobody);
    receiver.progress(&mut nobody);
    drop(sender);
    for _ in 0..1000 {
        receiver.progress(&mut nobody);
    }
    assert_eq!(nobody.lost, [TransferError::RemoteLost]);
}

#[test]
fn a_remote_that_is_not_there_is_told_of_once_however_often_its_address_is_named() {
    static TOLD_COUNT: AtomicU32 = AtomicU32::new(0);
    let mut transport = open(Settings {
        report: |_| {
            TOLD_COUNT.fetch_add(1, Ordering::Relaxed);
        },
        ..Settings::default()
    });
    // A port that nobody has as long as this is open, and no Weft process behind it.
    let port = UdpSocket::bind("127.0.0.1:0").expect("port");
    transport.add_remote(RemoteId(0), port.local_addr().expect("address"));
    for _ in 0..5 {
        let failed = Err(PostError::Failed(TransferError::RemoteLost));
        assert_eq!(send_word(&mut transport), failed);
        transport.name_again(RemoteId(0));
    }
    assert_eq!(TOLD_COUNT.load(Ordering::Relaxed), 1);
}
