// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hello section (srd-protocol 3): how to reach the writer. Rides on packets until the remote
//! knows us.

use std::net::IpAddr;

use crate::bytes::{Head, Reader};
use crate::malformed::{Malformed, require};
use crate::path::PORT_COUNT;
use crate::port_addresses::PortAddresses;

/// Size of the section without further addresses (srd-protocol 3).
pub const HELLO_BYTES: usize = 72;
/// What every endpoint takes, and every network carries that QUIC can use (RFC 9000, 14).
pub const DATAGRAM_BYTES_LEAST: u16 = 1200;

/// The feature of answering probes one by one, and probes with padding (srd-protocol 3, 16.1).
pub const ANSWERS_PROBES: u32 = 1;
/// The feature of asking for acknowledgements before it must wait for them (srd-protocol 7.5): then
/// those of its messages in segments may be held back.
pub const ASKS_IN_TIME: u32 = 2;

/// What an endpoint says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The number to send to it in `Header::context`; not 0.
    pub context: u32,
    /// Optional abilities: [`ANSWERS_PROBES`], [`ASKS_IN_TIME`]; others are ignored.
    pub features: u32,
    /// The largest datagram it takes, in bytes; at least [`DATAGRAM_BYTES_LEAST`].
    pub datagram_bytes: u16,
    /// Its ports; the first `port_count` are not 0.
    pub ports: [u16; PORT_COUNT],
    /// 1 to 8.
    pub port_count: u8,
    /// Where they are.
    pub addresses: PortAddresses,
    /// What may be sent to it at the start (srd-protocol 11.3).
    pub receive_limit: u64,
    /// From the remote's greeting (srd-protocol 14.6); 0 if there was none.
    pub cookie: u64,
    /// The address of its first port: the one it is known by; unspecified if it does not say.
    pub address: IpAddr,
    /// Where heartbeats are answered, at that address (srd-protocol 13.6); 0 for nowhere.
    pub heartbeat_port: u16,
}

impl Hello {
    pub(crate) fn write(&self, head: &mut Head) {
        head.put_u32(self.context);
        head.put_u32(self.features);
        head.put_u16(self.datagram_bytes);
        head.put_u8(self.port_count);
        head.put_u8(self.addresses.count());
        for port in self.ports {
            head.put_u16(port);
        }
        head.put_u32(self.addresses.numbers());
        head.put_u64(self.receive_limit);
        head.put_u64(self.cookie);
        head.put_address(self.address);
        head.put_u16(self.heartbeat_port);
        head.put(&[0; 6]);
        self.addresses.write(head);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let context = reader.u32("context of the hello")?;
        require(context != 0, "context of the hello", 0, "it is never 0")?;
        let features = reader.u32("features")?;
        let datagram_bytes = reader.u16("datagram_bytes")?;
        require(
            datagram_bytes >= DATAGRAM_BYTES_LEAST,
            "datagram_bytes",
            u64::from(datagram_bytes),
            "every endpoint takes at least 1200",
        )?;
        let port_count = reader.u8("port count")?;
        require(
            (1..=PORT_COUNT as u8).contains(&port_count),
            "port count",
            u64::from(port_count),
            "an endpoint has 1 to 8 ports",
        )?;
        let further_count = reader.u8("further address count")?;
        let mut ports = [0; PORT_COUNT];
        for (index, port) in ports.iter_mut().enumerate() {
            *port = reader.u16("port")?;
            require(
                (*port != 0) == (index < usize::from(port_count)),
                "port",
                u64::from(*port),
                "as many ports as counted are not 0, and the rest are",
            )?;
        }
        let numbers = reader.u32("addresses of the ports")?;
        let receive_limit = reader.u64("receive_limit of the hello")?;
        let cookie = reader.u64("cookie of the hello")?;
        let address = reader.address("address of the hello")?;
        let heartbeat_port = reader.u16("heartbeat port")?;
        reader.zeros::<6>("reserved bytes of the hello")?;
        let addresses = PortAddresses::read(reader, further_count, numbers, port_count)?;
        Ok(Self {
            context,
            features,
            datagram_bytes,
            ports,
            port_count,
            addresses,
            receive_limit,
            cookie,
            address,
            heartbeat_port,
        })
    }
}
