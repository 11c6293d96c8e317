// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the world of `pair` is made of: units of time, weather, addresses, the job's key, bytes to
//! send.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use weft_srd::{Config, Offer, Remote, Transmit};
use weft_wire::piece::PIECE_HEAD_BYTES;
use weft_wire::{Head, Message, PATH_COUNT, PORT_COUNT, Path, PortAddresses};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Ports of every host: 1000 to 1007.
pub const FIRST_PORT: u16 = 1000;
/// Where every host answers heartbeats, if anybody does: next to the first port, whose place
/// a stranger's has (srd-protocol 13.6). Others are ports of messages.
pub const HEARTBEAT_PORT: u16 = FIRST_PORT + 100;

/// Seeds of a random test: those given, or `WEFT_SEED=7` or `WEFT_SEED=100..500` from the
/// environment.
pub fn seeds(default: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("WEFT_SEED") else {
        return default;
    };
    let number = |text: &str| {
        text.parse()
            .expect("WEFT_SEED is a number or a range like 1..9")
    };
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(&text)..number(&text) + 1,
    }
}

/// What links do, for all of them alike.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub delay_ns: u64,
    /// Added at random: reorders even on one path.
    pub jitter_ns: u64,
    pub loss_percent: u64,
    pub double_percent: u64,
    pub damage_percent: u64,
}

impl Weather {
    pub const FAIR: Self = Self {
        delay_ns: 10 * US,
        jitter_ns: 0,
        loss_percent: 0,
        double_percent: 0,
        damage_percent: 0,
    };
    pub const STORM: Self = Self {
        delay_ns: 10 * US,
        jitter_ns: 40 * US,
        loss_percent: 5,
        double_percent: 3,
        damage_percent: 2,
    };
}

/// A message as its receiver got it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Got {
    pub from: Remote,
    pub life: u32,
    pub message: Message,
    pub payload: Vec<u8>,
}

impl Got {
    /// What a receipt of it names.
    pub fn offer(&self) -> Offer {
        Offer {
            remote: self.from,
            life: self.life,
            message_id: self.message.id,
        }
    }
}

/// What an owner does with offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Accept,
    /// At most this many bytes.
    Truncate(u64),
    Refuse,
    Keep,
}

/// A datagram as somebody on its path has seen it.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub to: usize,
    pub from: SocketAddr,
    pub bytes: Vec<u8>,
    /// Of each datagram that it left in.
    pub datagram_bytes: usize,
}

/// A host's own clock, beside the world's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// By so much it has jumped ahead.
    pub ahead_ns: u64,
    /// It stands still at this time.
    pub stopped_at: Option<u64>,
}

impl Clock {
    /// What it shows at a time of the world.
    pub fn at(&self, now: u64) -> u64 {
        self.stopped_at.unwrap_or(now + self.ahead_ns)
    }

    /// When in the world it shows this time; never if it stands still.
    pub fn reaches(&self, time: u64) -> Option<u64> {
        let runs = self.stopped_at.is_none();
        runs.then(|| time.saturating_sub(self.ahead_ns))
    }

    /// It stands still from this time of the world on. Once it goes on it is where it would be
    /// anyway.
    pub fn stop(&mut self, now: u64) {
        self.stopped_at = Some(self.at(now));
    }
}

/// A stand-in for the keyed tag of weft-seal (srd-protocol 14.1): finds damage.
fn tag(datagram: &[u8]) -> [u8; 8] {
    let bytes = datagram[..24].iter().chain(&datagram[32..]);
    let tag = bytes.fold(0x5eed_u64, |tag, byte| {
        (tag ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    tag.to_le_bytes()
}

/// The datagram of a packet, tagged.
pub fn sealed(head: &Head, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [head.as_bytes(), payload].concat();
    let tag = tag(&bytes);
    bytes[24..32].copy_from_slice(&tag);
    bytes
}

/// Whether it was not changed on its way.
pub fn is_whole(datagram: &[u8]) -> bool {
    datagram.len() >= 48 && datagram[24..32] == tag(datagram)
}

pub fn ip(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + host as u8))
}

pub fn address(host: usize) -> SocketAddr {
    SocketAddr::new(ip(host), FIRST_PORT)
}

/// The address of a host on one of the links; links lead nowhere but to themselves.
pub fn link_ip(host: usize, link: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, link, 1 + host as u8))
}

/// The host and the link that have an address.
pub fn place_of(ip: IpAddr) -> (usize, u8) {
    match ip {
        IpAddr::V4(ip) => (usize::from(ip.octets()[3]) - 1, ip.octets()[2]),
        IpAddr::V6(_) => unreachable!("hosts have IPv4 addresses here"),
    }
}

/// The same settings for one host, on so many links as its addresses are.
pub fn config_of(host: usize, mut config: Config) -> Config {
    let links = 1..=config.addresses.further().len() as u8;
    let further: Vec<IpAddr> = links.map(|link| link_ip(host, link)).collect();
    config.addresses = PortAddresses::dealt(&further);
    config.address = ip(host);
    config.heartbeat_port = HEARTBEAT_PORT;
    config
}

/// The paths that stay on one link.
pub fn routes(own: &PortAddresses, targets: &[SocketAddr; PORT_COUNT]) -> u64 {
    let paths = (0..PATH_COUNT as u8).filter_map(Path::from_number);
    let stays = |path: &Path| {
        let target = targets[usize::from(path.target_port_index())];
        own.number(path.source_port_index()) == place_of(target.ip()).1
    };
    paths.filter(stays).fold(0, |set, path| set | path.bit())
}

pub fn config() -> Config {
    let mut config = Config {
        long_packets: true,
        ..Config::default()
    };
    for (index, port) in config.ports.iter_mut().enumerate() {
        *port = FIRST_PORT + index as u16;
    }
    config
}

/// Bytes that depend on token and place.
pub fn pattern(token: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|at| (token.wrapping_mul(131) ^ (at.wrapping_mul(2_654_435_761) >> 7)) as u8)
        .collect()
}

/// How many datagrams a packet leaves in, and how long they are, which nobody may exceed.
pub fn datagrams_of(transmit: &Transmit, limit_bytes: usize) -> (u32, usize) {
    let all = transmit.length_bytes();
    let (count, each) = match usize::from(transmit.cut_bytes) {
        0 => (1, all),
        each => (all.div_ceil(each - PIECE_HEAD_BYTES) as u32, each),
    };
    assert!(each <= limit_bytes, "{each} bytes in a datagram");
    (count, each)
}
