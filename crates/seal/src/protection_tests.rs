// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the protection: what passes, what never does, and the vectors of srd-protocol 14.8.

use proptest::prelude::*;

use super::*;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER: &str = "100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// The incarnation of the vectors.
const OWN: u64 = 0x1122_3344_5566_7788;

fn key(text: &str) -> JobKey {
    JobKey::parse(text).unwrap()
}

fn tagged(text: &str) -> PacketProtection {
    PacketProtection::tagged(&key(text))
        .unwrap()
        .of(OWN, &key(text))
}

fn sealed(text: &str, own: u64) -> PacketProtection {
    PacketProtection::sealed(&key(text))
        .unwrap()
        .of(own, &key(text))
}

/// A datagram that says that it is from `own`; what follows the incarnation counts up.
fn datagram(own: u64, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
    bytes[..8].copy_from_slice(&[weft_wire::VERSION << 4 | 1, 0, 9, 0, 7, 0, 0, 0]);
    bytes[SOURCE].copy_from_slice(&own.to_le_bytes());
    bytes[TAG_RANGE].fill(0);
    bytes
}

fn sent(protection: &mut PacketProtection, length: usize) -> Vec<u8> {
    let mut bytes = datagram(protection.incarnation(), length);
    protection.seal(&mut bytes);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_vectors_of_the_specification_hold() {
    let specification = include_str!("../../../docs/srd-protocol.md");
    let vector = |name: &str| -> String {
        let mut lines = specification.lines();
        let found = lines.find(|line| *line == format!("{name}:"));
        assert!(found.is_some(), "srd-protocol 14.8 has no vector {name}");
        lines
            .take_while(|line| !line.is_empty() && !line.ends_with(':') && !line.starts_with("```"))
            .collect()
    };
    let root = key(KEY).root();
    let tag_key = crate::job_key::derive::<16>(&root, &[b"tag"]);
    let (own, upper) = (OWN.to_le_bytes(), 1u32.to_le_bytes());
    let seal_key = crate::job_key::derive::<32>(&root, &[b"seal", &own, &upper]);
    assert_eq!(vector("job key"), KEY);
    assert_eq!(vector("tag key"), hex(&tag_key[..]));
    let long_tag_key = crate::job_key::derive::<16>(&root, &[b"long tag"]);
    assert_eq!(vector("long tag key"), hex(&long_tag_key[..]));
    assert_eq!(vector("seal key of count 4294967296"), hex(&seal_key[..]));
    assert_eq!(vector("datagram"), hex(&datagram(OWN, 56)));
    assert_eq!(vector("tagged"), hex(&sent(&mut tagged(KEY), 56)));
    let long = sent(&mut tagged(KEY), 2048);
    assert_eq!(vector("tag of the long datagram"), hex(&long[TAG_RANGE]));
    let mut protection = sealed(KEY, OWN);
    assert_eq!(vector("sealed, count 0"), hex(&sent(&mut protection, 56)));
    protection.sealing().skip_to(1 << 32);
    assert_eq!(
        vector("sealed, count 4294967296"),
        hex(&sent(&mut protection, 56))
    );
}

#[test]
fn what_one_member_sends_another_reads_in_every_mode() {
    let modes = [
        PacketProtection::open_network,
        || PacketProtection::tagged(&key(KEY)),
        || PacketProtection::sealed(&key(KEY)),
    ];
    for make in modes {
        let (mut sender, mut receiver) = (make().unwrap(), make().unwrap());
        assert_ne!(sender.incarnation(), receiver.incarnation());
        for length in [48, 49, 64, 1400, 8900, 65_000] {
            let plain = datagram(sender.incarnation(), length);
            let mut bytes = plain.clone();
            sender.seal(&mut bytes);
            assert_eq!(bytes.len(), length + sender.overhead_bytes());
            assert_eq!(receiver.open(&mut bytes), Ok(length));
            bytes.truncate(length);
            bytes[FLAGS] &= !SEALED;
            bytes[TAG_RANGE].fill(0);
            assert!(bytes == plain, "{length} bytes");
        }
        assert_eq!(receiver.rejections(), Rejections::default());
    }
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    for mut protection in [tagged(KEY), sealed(KEY, OWN)] {
        for length in [48, 91, 300] {
            let honest = sent(&mut protection, length);
            for bit in 0..8 * honest.len() {
                let mut bytes = honest.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(
                    protection.open(&mut bytes).is_err(),
                    "bit {bit} of {length} bytes"
                );
            }
            for cut in 0..honest.len() {
                assert!(
                    protection.open(&mut honest[..cut].to_vec()).is_err(),
                    "{cut} of {length}"
                );
            }
            for more in [1, 16, 48] {
                let mut bytes = [&honest[..], &vec![0; more]].concat();
                assert_eq!(
                    protection.open(&mut bytes),
                    Err(Rejected::Forged),
                    "{more} more bytes"
                );
            }
            assert_eq!(protection.open(&mut honest.clone()), Ok(length));
        }
    }
}

#[test]
fn another_job_and_other_settings_are_turned_away_and_counted() {
    let makers: [fn() -> PacketProtection; 4] = [
        || PacketProtection::open_network().unwrap(),
        || tagged(KEY),
        || sealed(KEY, OWN),
        || tagged(OTHER),
    ];
    let expected = [
        [
            None,
            Some(Rejected::Mode),
            Some(Rejected::Mode),
            Some(Rejected::Mode),
        ],
        [
            Some(Rejected::Forged),
            None,
            Some(Rejected::Mode),
            Some(Rejected::Forged),
        ],
        [
            Some(Rejected::Mode),
            Some(Rejected::Mode),
            None,
            Some(Rejected::Mode),
        ],
        [
            Some(Rejected::Forged),
            Some(Rejected::Forged),
            Some(Rejected::Mode),
            None,
        ],
    ];
    for (receiver, row) in makers.iter().zip(expected) {
        let mut protection = receiver();
        for (sender, why) in makers.iter().zip(row) {
            let mut bytes = sent(&mut sender(), 100);
            assert_eq!(protection.open(&mut bytes).err(), why, "{protection:?}");
        }
        let rejections = protection.rejections();
        let counted = rejections.mode_count + rejections.forged_count;
        assert_eq!(counted, row.iter().flatten().count() as u64);
    }
    let mut bytes = sent(&mut sealed(OTHER, OWN), 100);
    assert_eq!(sealed(KEY, OWN).open(&mut bytes), Err(Rejected::Forged));
}

#[test]
fn no_two_datagrams_of_a_job_are_encrypted_alike() {
    let mut seen = std::collections::HashSet::new();
    for own in [OWN, OWN + 1, OWN ^ 1 << 63] {
        let mut protection = sealed(KEY, own);
        for count in [0, (1 << 32) - 2, 1 << 33, u64::MAX - 3] {
            protection.sealing().skip_to(count);
            for _ in 0..3 {
                let bytes = sent(&mut protection, 64);
                assert!(
                    seen.insert(bytes[48..64].to_vec()),
                    "the key stream came twice"
                );
            }
        }
    }
}

#[test]
fn datagrams_around_a_change_of_keys_are_read_in_any_order() {
    let (mut sender, mut receiver) = (sealed(KEY, OWN), sealed(KEY, OWN + 1));
    sender.sealing().skip_to((1 << 32) - 4);
    let mut flying: Vec<Vec<u8>> = (0..8).map(|_| sent(&mut sender, 100)).collect();
    flying.swap(0, 7);
    flying.swap(3, 4);
    for bytes in &mut flying {
        assert_eq!(receiver.open(bytes), Ok(100));
    }
    assert_eq!(receiver.sealing().kept(), 2);
}

#[test]
fn a_flood_of_invented_senders_leaves_no_memory_behind() {
    let mut receiver = sealed(KEY, OWN);
    let honest = sent(&mut sealed(KEY, OWN + 1), 100);
    for sender in 0..10_000u64 {
        let mut bytes = honest.clone();
        bytes[SOURCE].copy_from_slice(&(sender + 1).to_le_bytes());
        assert_eq!(receiver.open(&mut bytes), Err(Rejected::Forged));
    }
    assert_eq!(receiver.sealing().kept(), 0);
}

#[test]
fn a_job_of_any_size_keeps_a_limited_number_of_keys() {
    let mut receiver = sealed(KEY, OWN);
    for sender in 1..=20_000u64 {
        let mut bytes = sent(&mut sealed(KEY, sender), 48);
        assert_eq!(receiver.open(&mut bytes), Ok(48));
    }
    assert!(receiver.sealing().kept() <= 16_384);
}

#[test]
#[should_panic(expected = "incarnation of its protection")]
fn packet_protection_does_not_encrypt_in_the_name_of_another() {
    let mut protection = sealed(KEY, OWN);
    protection.seal(&mut datagram(OWN + 1, 100));
}

proptest! {
    #[test]
    fn a_tag_does_not_depend_on_where_the_payload_lies(
        length in 0usize..20_000,
        step in 1usize..9_000,
    ) {
        let mut protection = tagged(KEY);
        let whole = datagram(OWN, 92 + length);
        let (head, payload) = whole.split_at(92);
        let mut head = head.to_vec();
        protection.tag_apart(&mut head, length, |see| payload.chunks(step).for_each(see));
        let mut bytes = [&head[..], payload].concat();
        prop_assert_eq!(tagged(KEY).open(&mut bytes), Ok(92 + length));
    }

    #[test]
    fn random_datagrams_are_turned_away_and_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        for mut protection in [tagged(KEY), sealed(KEY, OWN)] {
            prop_assert!(protection.open(&mut bytes.clone()).is_err());
        }
        let _ = PacketProtection::open_network().unwrap().open(&mut bytes.clone());
    }
}
