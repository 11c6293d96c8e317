// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can be set, with defaults that need no tuning (srd-protocol 15). Read by every module;
//! checked once by [`Config::check`].

use core::fmt;
use core::ops::RangeInclusive;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use weft_wire::time::Nanos;

use weft_wire::{PATH_COUNT, PORT_COUNT, PortAddresses};

/// Sequences under way per flow (srd-protocol 15, part of the protocol).
pub const SEQUENCE_LIMIT: u64 = 1024;
/// Messages under way per flow and direction (srd-protocol 15, part of the protocol).
pub const MESSAGE_LIMIT: usize = 64;
/// How many bytes may be sent before a remote's limit is known; also the smallest window
/// (srd-protocol 11.3, part of the protocol).
pub const FIRST_CONTACT_BYTES: u64 = 64 << 10;
/// So many times as long as another packet waits a receipt for its acknowledgement, so that it goes
/// with the next message (chosen: a message of 64 KiB takes half of that).
const RECEIPT_DELAYS: u64 = 5;
/// The longest message in segments (srd-protocol 12.1, part of the protocol; chosen: as much as a
/// remote may send to us before it is matched).
pub const UNASKED_BYTES: u64 = 256 << 10;
/// The unit in which grants and slack are counted (srd-protocol 10.8, 11.1; chosen).
pub const BATCH_BYTES: u32 = 16 << 10;
/// At most this many consecutive bytes keep to one path (srd-protocol 10.1; measured: one system
/// call hands this much to the kernel joined, so that one call, one pass through the kernel and one
/// acknowledgement are enough for all of it).
pub const PATH_BATCH_BYTES: u32 = 65_507;
/// After this much of one message, another message of the same flow has its turn (chosen: two
/// messages one after the other are done sooner than two at the same time, and nobody waits longer
/// than a millisecond for this).
pub const TURN_BYTES: u64 = 1 << 20;
/// The least that a message counts against a limit (srd-protocol 11.3, part of the protocol).
pub const MESSAGE_COST_LEAST: u64 = 64;

/// Everything that can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The address of our first port, by which remotes know us; unspecified if a simulation does
    /// not need it. Answers name this address (srd-protocol 14.9).
    pub address: IpAddr,
    /// The port at that address that answers heartbeats (srd-protocol 13.6); 0 for none.
    pub heartbeat_port: u16,
    /// Our own ports; the first one is the port of our address. The first `port_count` are not 0.
    pub ports: [u16; PORT_COUNT],
    /// 1 to 8.
    pub port_count: u8,
    /// At which of our addresses each of them is (srd-protocol 17).
    pub addresses: PortAddresses,
    /// Largest datagram to send and to accept, in bytes, without IP and UDP headers.
    pub datagram_bytes: u16,
    /// How many of the 64 paths to use. For comparison, 1 shows what the others gain.
    pub path_count: u8,
    /// Accepts nothing from a remote before it has proved that it lives now, at its address. This
    /// takes one more round trip at first contact (srd-protocol 14.6). Needed on every network on
    /// which somebody may replay packets or forge their source address.
    pub fresh_contact: bool,
    /// The driver sends datagrams with ECT(0) if the flag ECT in their head says so, and reports
    /// the ECN bits of those that arrive (srd-protocol 10.12).
    pub ecn: bool,
    /// The driver cuts packets that are longer than a datagram (srd-protocol 19). Such packets are
    /// taken in any case.
    pub long_packets: bool,
    /// Times.
    pub timing: Timing,
    /// Windows.
    pub pace: Pace,
    /// Bounds of memory.
    pub memory: Memory,
}

/// Times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How long an acknowledgement may wait so that a packet can carry it (srd-protocol 7.3).
    pub acknowledgement_delay_ns: Nanos,
    /// The least retransmission time-out (srd-protocol 9.2).
    pub rto_floor_ns: Nanos,
    /// The most, with back-off.
    pub rto_ceiling_ns: Nanos,
    /// Silence that ends a flow (srd-protocol 13.1).
    pub dead_after_ns: Nanos,
    /// Idleness that folds a flow (srd-protocol 6.6).
    pub idle_after_ns: Nanos,
}

/// Windows, in bytes, and what moves them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Window before anything is known.
    pub initial_cwnd_bytes: u64,
    /// The most; 3 times link rate times round trip where both are known (srd-protocol 15).
    pub cwnd_limit_bytes: u64,
    /// The least delay target (srd-protocol 10.4).
    pub target_floor_ns: Nanos,
    /// Limit of the bytes that this receiver has granted and that have not arrived, in all
    /// (srd-protocol 11.1).
    pub credit_pool_bytes: u64,
}

/// Bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Messages up to this length are sent before they are matched (srd-protocol 12.1).
    pub medium_limit_bytes: u64,
    /// Messages up to this length are sent in the same way if nothing else is under way and the
    /// window is large enough (srd-protocol 12.1); at most 256 KiB. If this limit is lower than the
    /// other one, the other one holds.
    pub unasked_limit_bytes: u64,
    /// How many bytes of unmatched messages a remote may send to us (srd-protocol 11.3).
    pub receive_credit_bytes: u64,
    /// How many bytes are buffered for all remotes together. Beyond that only the next message in
    /// order is accepted.
    pub held_limit_bytes: u64,
    /// Remotes known at a time.
    pub remote_limit: u32,
}

impl Timing {
    /// How long the acknowledgement of a receipt may take: nobody waits for it (srd-protocol 7.3).
    pub(crate) fn receipt_delay_ns(&self) -> Nanos {
        RECEIPT_DELAYS * self.acknowledgement_delay_ns
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            heartbeat_port: 0,
            ports: [1, 2, 3, 4, 5, 6, 7, 8],
            port_count: PORT_COUNT as u8,
            addresses: PortAddresses::ONE,
            datagram_bytes: 1400,
            path_count: PATH_COUNT as u8,
            fresh_contact: false,
            ecn: false,
            long_packets: false,
            timing: Timing {
                acknowledgement_delay_ns: Nanos(20_000),
                rto_floor_ns: Nanos(200_000),
                rto_ceiling_ns: Nanos(100_000_000),
                dead_after_ns: Nanos(5_000_000_000),
                idle_after_ns: Nanos(30_000_000_000),
            },
            pace: Pace {
                initial_cwnd_bytes: 128 << 10,
                cwnd_limit_bytes: 4 << 20,
                target_floor_ns: Nanos(25_000),
                credit_pool_bytes: 1 << 20,
            },
            memory: Memory {
                medium_limit_bytes: FIRST_CONTACT_BYTES,
                unasked_limit_bytes: UNASKED_BYTES,
                receive_credit_bytes: 1 << 20,
                held_limit_bytes: 64 << 20,
                remote_limit: 1 << 20,
            },
        }
    }
}

/// A setting that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadConfig {
    /// Which.
    pub setting: &'static str,
    /// Its value.
    pub value: u64,
    /// What is allowed.
    pub rule: &'static str,
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; {}", self.setting, self.value, self.rule)
    }
}

impl core::error::Error for BadConfig {}

fn within(
    setting: &'static str,
    value: u64,
    range: RangeInclusive<u64>,
    rule: &'static str,
) -> Result<(), BadConfig> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(BadConfig {
            setting,
            value,
            rule,
        })
    }
}

/// Far above anything sensible, and far below an overflow.
const MOST: u64 = u64::MAX / 4;

impl Config {
    /// The address that we are known by.
    pub(crate) fn home(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports[0])
    }

    /// Checks every value. Setup.
    ///
    /// # Errors
    /// The first setting that cannot be, and what it may be.
    pub fn check(&self) -> Result<(), BadConfig> {
        let (ports, paths) = (PORT_COUNT as u64, PATH_COUNT as u64);
        let datagram = u64::from(self.datagram_bytes);
        within(
            "port_count",
            self.port_count.into(),
            1..=ports,
            "it must be 1 to 8",
        )?;
        within(
            "path_count",
            self.path_count.into(),
            1..=paths,
            "it must be 1 to 64",
        )?;
        within(
            "datagram_bytes",
            datagram,
            1200..=65_507,
            "it must be 1200 to 65507, what UDP carries",
        )?;
        for port in &self.ports[..usize::from(self.port_count)] {
            within(
                "ports",
                (*port).into(),
                1..=65_535,
                "as many as port_count must not be 0",
            )?;
        }
        for index in 0..PORT_COUNT as u8 {
            let most = if index == 0 || index >= self.port_count {
                0
            } else {
                self.addresses.further().len() as u64
            };
            within(
                "addresses",
                self.addresses.number(index).into(),
                0..=most,
                "the first port, and those that are not there, must be at the first address",
            )?;
        }
        self.timing.check()?;
        self.pace.check(datagram)?;
        self.memory.check()
    }
}

impl Timing {
    fn check(&self) -> Result<(), BadConfig> {
        let rule = "it must be 1 us to rto_ceiling_ns";
        within(
            "rto_floor_ns",
            self.rto_floor_ns.0,
            1_000..=self.rto_ceiling_ns.0,
            rule,
        )?;
        let rule = "it must be at least rto_floor_ns";
        within(
            "dead_after_ns",
            self.dead_after_ns.0,
            self.rto_floor_ns.0..=MOST,
            rule,
        )?;
        let delay = self.acknowledgement_delay_ns.0;
        within(
            "acknowledgement_delay_ns",
            delay,
            0..=100_000,
            "it must be at most 100 us",
        )
    }
}

impl Pace {
    fn check(&self, datagram_bytes: u64) -> Result<(), BadConfig> {
        let rule = "it must be at most 1 GiB";
        within("cwnd_limit_bytes", self.cwnd_limit_bytes, 0..=1 << 30, rule)?;
        let window = 2 * datagram_bytes..=self.cwnd_limit_bytes;
        let rule = "it must be two datagrams to cwnd_limit_bytes";
        within("initial_cwnd_bytes", self.initial_cwnd_bytes, window, rule)?;
        let rule = "it must be at least one batch of 16 KiB";
        within(
            "credit_pool_bytes",
            self.credit_pool_bytes,
            u64::from(BATCH_BYTES)..=MOST,
            rule,
        )
    }
}

impl Memory {
    fn check(&self) -> Result<(), BadConfig> {
        let rule = "it must be at most 64 KiB, what every remote takes";
        within(
            "medium_limit_bytes",
            self.medium_limit_bytes,
            0..=FIRST_CONTACT_BYTES,
            rule,
        )?;
        let rule = "it must be at most 256 KiB, the longest message in segments";
        let unasked = self.unasked_limit_bytes;
        within("unasked_limit_bytes", unasked, 0..=UNASKED_BYTES, rule)?;
        let rule = "it must be at least 64 KiB";
        within(
            "receive_credit_bytes",
            self.receive_credit_bytes,
            FIRST_CONTACT_BYTES..=MOST,
            rule,
        )?;
        within(
            "remote_limit",
            self.remote_limit.into(),
            1..=1 << 31,
            "it must be 1 to 2^31",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_and_a_bad_setting_is_named_with_its_value_and_limit() {
        let mut config = Config::default();
        assert_eq!(config.check(), Ok(()));
        config.memory.receive_credit_bytes = 1000;
        let sentence = config.check().unwrap_err().to_string();
        assert_eq!(
            sentence,
            "receive_credit_bytes is 1000; it must be at least 64 KiB"
        );
        config.port_count = 9;
        assert_eq!(config.check().unwrap_err().setting, "port_count");
    }
}
