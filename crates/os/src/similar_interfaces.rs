// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which interfaces of this machine are used together when nobody names any: those that are like
//! the one that is used anyway. Called by the provider and by doctor; reads sysfs
//! (Documentation/ABI/testing/sysfs-class-net).

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::interface::InterfaceAddress;

/// Files and folders that only interfaces of some kind have: hardware, bridges, bonds, tunnels of a
/// process, radio.
const MARKS: [&str; 5] = ["device", "bridge", "bonding", "tun_flags", "wireless"];

/// What an interface is, as far as another one is to be like it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    /// Its link layer (ARPHRD_ of linux/if_arp.h).
    link: String,
    /// The largest packet it takes.
    mtu: String,
    /// In Mbit/s; empty or -1 where it does not say.
    speed: String,
    marks: [bool; MARKS.len()],
}

impl Kind {
    /// Of an interface of this name; `None` if there is none. Setup.
    pub fn of(name: &str) -> Option<Self> {
        Self::in_folder(&Path::new("/sys/class/net").join(name))
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let text = |file: &str| {
            let text = fs::read_to_string(folder.join(file));
            text.map(|text| text.trim().to_owned())
        };
        Some(Self {
            link: text("type").ok()?,
            mtu: text("mtu").ok()?,
            speed: text("speed").unwrap_or_default(),
            marks: MARKS.map(|mark| folder.join(mark).exists()),
        })
    }
}

/// An address of another interface and, if it is not used, why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Other {
    /// The interface and its address.
    pub interface: InterfaceAddress,
    /// In a few words; `None` if it is used.
    pub passed_over: Option<&'static str>,
}

/// The other addresses of the family of `first`, one of each interface, and whether they are used
/// with it: those whose interface is of the same kind, speed and packet size, up to `most`.
/// `kind_of` is [`Kind::of`] but in tests. Setup.
pub fn others(
    first: IpAddr,
    all: &[InterfaceAddress],
    most: usize,
    kind_of: impl Fn(&str) -> Option<Kind>,
) -> Vec<Other> {
    let Some(own) = all.iter().find(|entry| entry.address == first) else {
        return Vec::new();
    };
    if own.is_loopback {
        return Vec::new();
    }
    let kind = kind_of(&own.name);
    let mut found: Vec<Other> = Vec::new();
    let mut used = 0;
    for entry in all {
        let known = |other: &Other| other.interface.name == entry.name;
        let another = entry.name != own.name && entry.address.is_ipv4() == first.is_ipv4();
        if entry.is_loopback || !another || found.iter().any(known) {
            continue;
        }
        let passed_over = why_not(kind.as_ref(), kind_of(&entry.name).as_ref(), used < most);
        used += usize::from(passed_over.is_none());
        found.push(Other {
            interface: entry.clone(),
            passed_over,
        });
    }
    found
}

fn why_not(own: Option<&Kind>, other: Option<&Kind>, has_room: bool) -> Option<&'static str> {
    let (Some(own), Some(other)) = (own, other) else {
        return Some("sysfs does not say what it is");
    };
    if (&own.link, own.marks) != (&other.link, other.marks) {
        Some("of another kind")
    } else if own.speed != other.speed {
        Some("of another speed")
    } else if own.mtu != other.mtu {
        Some("of another MTU")
    } else if !has_room {
        Some("one more than can be used")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, address: &str) -> InterfaceAddress {
        InterfaceAddress {
            name: name.into(),
            address: address.parse().expect("address"),
            is_loopback: name == "lo",
        }
    }

    fn kind_of(name: &str) -> Option<Kind> {
        let card = Kind {
            link: "1".into(),
            mtu: "9000".into(),
            speed: "25000".into(),
            marks: [true, false, false, false, false],
        };
        match name {
            "eth0" | "eth1" | "eth2" | "eth3" | "eth4" => Some(card),
            "slow0" => Some(Kind {
                speed: "1000".into(),
                ..card
            }),
            "plain0" => Some(Kind {
                mtu: "1500".into(),
                ..card
            }),
            "docker0" => Some(Kind {
                marks: [false, true, false, false, false],
                ..card
            }),
            _ => None,
        }
    }

    #[test]
    fn interfaces_like_the_first_are_used_with_it_and_others_are_passed_over_with_a_reason() {
        let all = [
            entry("lo", "127.0.0.1"),
            entry("docker0", "172.17.0.1"),
            entry("eth0", "10.0.0.1"),
            entry("eth0", "10.9.0.1"),
            entry("eth0", "fd00::1"),
            entry("eth1", "10.0.1.1"),
            entry("eth1", "fd01::1"),
            entry("slow0", "10.0.2.1"),
            entry("plain0", "10.0.3.1"),
            entry("odd0", "10.0.4.1"),
            entry("eth2", "10.0.5.1"),
            entry("eth3", "10.0.6.1"),
            entry("eth4", "10.0.7.1"),
        ];
        let told = |first: &str| -> Vec<String> {
            let others = others(first.parse().expect("address"), &all, 3, kind_of);
            let one = |other: &Other| {
                let why = other.passed_over.unwrap_or("used");
                format!("{} {why}", other.interface.address)
            };
            others.iter().map(one).collect()
        };
        assert_eq!(
            told("10.0.0.1"),
            [
                "172.17.0.1 of another kind",
                "10.0.1.1 used",
                "10.0.2.1 of another speed",
                "10.0.3.1 of another MTU",
                "10.0.4.1 sysfs does not say what it is",
                "10.0.5.1 used",
                "10.0.6.1 used",
                "10.0.7.1 one more than can be used",
            ]
        );
        assert_eq!(told("fd00::1"), ["fd01::1 used"]);
        assert_eq!(told("127.0.0.1"), [""; 0]);
        assert_eq!(told("192.0.2.1"), [""; 0]);
    }

    #[test]
    fn sysfs_is_read_where_it_is() {
        if Path::new("/sys/class/net/lo").exists() {
            assert_eq!(Kind::of("lo"), Kind::of("lo"));
            assert!(Kind::of("lo").is_some());
        }
        assert_eq!(Kind::of("weft-no-such-if0"), None);
    }
}
