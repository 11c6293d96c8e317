// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading and writing little-endian numbers within bounds. Used by every format of this crate.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::malformed::Malformed;

/// The longest a packet can be without its payload: header, a hello with all further addresses, an
/// acknowledgement with a full bitmap, marks, the longest body.
pub const HEAD_BYTES: usize = 48 + (72 + 48) + (64 + 128) + 24 + 44;

/// Everything of a packet but its payload, in a fixed array.
#[derive(Clone, Copy)]
pub struct Head {
    bytes: [u8; HEAD_BYTES],
    length_bytes: u16,
}

impl Head {
    /// An empty one.
    #[inline]
    pub fn new() -> Self {
        Self {
            bytes: [0; HEAD_BYTES],
            length_bytes: 0,
        }
    }

    /// Forgets what was written, without touching it: a head is written in the place of the one
    /// before. Fast path.
    #[inline]
    pub fn clear(&mut self) {
        self.length_bytes = 0;
    }

    /// What was written.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length_bytes)]
    }

    /// The next `N` bytes, all of which the caller writes; as for [`Head::put`] there is room.
    #[inline(always)]
    pub(crate) fn next<const N: usize>(&mut self) -> &mut [u8; N] {
        let at = usize::from(self.length_bytes);
        self.length_bytes += N as u16;
        self.bytes[at..]
            .first_chunk_mut()
            .expect("a head has room for all sections")
    }

    /// Every writer of this crate stays below [`HEAD_BYTES`] by construction; a test holds all of
    /// them to it.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let at = usize::from(self.length_bytes);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.length_bytes += bytes.len() as u16;
    }

    #[inline]
    pub(crate) fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    #[inline]
    pub(crate) fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// An address of 16 bytes; of IPv4 mapped into IPv6 (RFC 4291, 2.5.5.2).
    pub(crate) fn put_address(&mut self, address: IpAddr) {
        let octets = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        self.put(&octets);
    }

    /// The address that an endpoint is known by, with its first port: 24 bytes.
    pub(crate) fn put_home(&mut self, home: SocketAddr) {
        self.put_address(home.ip());
        self.put_u16(home.port());
        self.put(&[0; 6]);
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Head {}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Head {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Head").field(&self.as_bytes()).finish()
    }
}

/// Writes a number into a place known when this is compiled.
#[inline(always)]
pub(crate) fn write_at<const N: usize, const M: usize>(
    place: &mut [u8; N],
    at: usize,
    bytes: [u8; M],
) {
    place[at..at + M].copy_from_slice(&bytes);
}

/// A datagram being read from its front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline(always)]
    pub(crate) fn new(datagram: &'a [u8]) -> Self {
        Self { rest: datagram }
    }

    /// Reads the fields of the next `N` bytes. Where all of these are there, no field has to ask
    /// whether it is. Fast path.
    #[inline(always)]
    pub(crate) fn stretch<const N: usize, T>(
        &mut self,
        fields: impl Fn(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let Some((front, rest)) = self.rest.split_first_chunk::<N>() else {
            return self.short_stretch(fields);
        };
        let mut whole = Self { rest: front };
        let read = fields(&mut whole)?;
        self.rest = rest;
        Ok(read)
    }

    /// Finds the field that is not there, or one before it that breaks a rule.
    #[cold]
    #[inline(never)]
    fn short_stretch<T>(
        &mut self,
        fields: impl Fn(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        fields(self)
    }

    /// What has not been read.
    #[inline(always)]
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    #[inline(always)]
    pub(crate) fn take<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], Malformed> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(Malformed::new(
                field,
                self.rest.len() as u64,
                "that is the number of bytes left, too few for this field",
            )),
        }
    }

    #[inline(always)]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        Ok(self.take::<1>(field)?[0])
    }

    #[inline(always)]
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.take(field)?))
    }

    #[inline(always)]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(field)?))
    }

    #[inline(always)]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(field)?))
    }

    /// See [`Head::put_address`].
    pub(crate) fn address(&mut self, field: &'static str) -> Result<IpAddr, Malformed> {
        let octets = self.take::<16>(field)?;
        Ok(Ipv6Addr::from(octets).to_canonical())
    }

    /// See [`Head::put_home`].
    pub(crate) fn home(&mut self, field: &'static str) -> Result<SocketAddr, Malformed> {
        let address = self.address(field)?;
        let port = self.u16(field)?;
        self.zeros::<6>(field)?;
        Ok(SocketAddr::new(address, port))
    }

    /// Reads bytes that must all be 0.
    #[inline(always)]
    pub(crate) fn zeros<const N: usize>(&mut self, field: &'static str) -> Result<(), Malformed> {
        let bytes = self.take::<N>(field)?;
        if bytes == [0; N] {
            return Ok(());
        }
        let byte = bytes.into_iter().find(|byte| *byte != 0).unwrap_or(0);
        Err(Malformed::new(field, u64::from(byte), "it must be 0"))
    }
}
