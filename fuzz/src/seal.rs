// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Target: a protection that is given anything. It lets in what a member of its job has made, and
//! nothing else.

use weft_seal::{JobKey, PacketProtection};

use crate::input::Input;

fn protection(key: &JobKey, mode: u8) -> PacketProtection {
    let made = match mode % 3 {
        0 => PacketProtection::tagged(key),
        1 => PacketProtection::sealed(key),
        _ => PacketProtection::open_network(),
    };
    made.expect("random bytes for an incarnation")
}

/// Runs one input: noise, then an honest datagram, then the same with changes.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mode = input.byte();
    let text = format!("{:064x}", u128::from(input.number()) + 1);
    let key = JobKey::parse(&text).expect("64 digits");
    let (mut sender, mut receiver) = (protection(&key, mode), protection(&key, mode));
    let mut noise = input.take(100).to_vec();
    if mode % 3 != 2 {
        assert!(receiver.open(&mut noise).is_err());
    } else {
        let _ = receiver.open(&mut noise);
    }
    let mut honest = vec![0; 48];
    honest.extend_from_slice(input.take(300));
    honest[8..16].copy_from_slice(&sender.incarnation().to_le_bytes());
    let length = honest.len();
    sender.seal(&mut honest);
    let mut changed = honest.clone();
    input.mutate(&mut changed);
    if changed != honest && mode % 3 != 2 {
        assert!(receiver.open(&mut changed).is_err());
    }
    assert_eq!(receiver.open(&mut honest), Ok(length));
}
