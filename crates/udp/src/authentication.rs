// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet authentication at the sockets: what leaves is tagged or encrypted, what arrives is
//! checked before anything reads it (srd-protocol 14). Called by sockets.rs.
//!
//! The tag must be that of the bytes that leave, and a user may write to his buffer until the
//! kernel has read it: then a datagram is turned away where it arrives. So under a key short ones,
//! and all that are encrypted or sent again, leave from a copy; of a long one's payload the tag is
//! read, and it leaves from where it lies. Without a key nothing is copied.

use std::net::SocketAddr;

use weft_seal::{Choice, PacketProtection};
use weft_srd::Transmit;

use crate::sends::Sends;
use crate::settings::{OpenError, Settings};

/// Longer datagrams leave from the user's buffer. Chosen: what is shorter costs less to copy than
/// to gather, and a word that its owner writes to all the time, as one-sided operations may read
/// it, is among them.
const COPIED_BYTES: usize = 4096;

/// What stands between the machine and the sockets.
#[derive(Debug)]
pub(crate) struct PacketAuthentication {
    /// `None` on a network where everybody is trusted.
    protection: Option<PacketProtection>,
    /// Whole datagrams of a batch, or heads of long ones, under a key; their memory is used again.
    ready: Vec<Vec<u8>>,
    /// The datagram that is being opened.
    opened: Vec<u8>,
    /// Where the user is told.
    report: fn(&str),
    reported: bool,
}

impl PacketAuthentication {
    /// Makes the protection that the settings ask for. Setup.
    pub(crate) fn open(settings: &Settings) -> Result<Self, OpenError> {
        let protection = match &settings.trust {
            None => None,
            Some(trust) => match trust.choose() {
                Ok(Choice::Protected(protection)) => Some(protection),
                Ok(Choice::SameHostOnly) => {
                    return Err(OpenError::Setting(format!(
                        "there is no job key, so this process cannot talk to other hosts. {}",
                        weft_seal::trust::WAYS_OUT
                    )));
                }
                Err(error) => return Err(OpenError::Setting(error.to_string())),
            },
        };
        Ok(Self {
            protection,
            ready: Vec::new(),
            opened: Vec::new(),
            report: settings.report,
            reported: false,
        })
    }

    /// The protection itself, for who sends and hears under an incarnation of its own.
    pub(crate) fn into_protection(self) -> Option<PacketProtection> {
        self.protection
    }

    /// What the machine must be made with, if there is a protection.
    pub(crate) fn incarnation(&self) -> Option<u64> {
        self.protection.as_ref().map(PacketProtection::incarnation)
    }

    /// By how much datagrams get longer.
    pub(crate) fn overhead_bytes(&self) -> usize {
        self.protection
            .as_ref()
            .map_or(0, PacketProtection::overhead_bytes)
    }

    /// Datagrams turned away so far.
    pub(crate) fn turned_away(&self) -> u64 {
        let protection = self.protection.as_ref();
        protection.map_or(0, |protection| protection.rejections().total())
    }

    /// Makes a batch ready to leave. Fast path.
    pub(crate) fn prepare(&mut self, batch: &[Transmit], sends: &Sends) {
        let Some(protection) = self
            .protection
            .as_mut()
            .filter(|protection| protection.has_key())
        else {
            return;
        };
        if self.ready.len() < batch.len() {
            self.ready.resize_with(batch.len(), Vec::new);
        }
        for (transmit, bytes) in batch.iter().zip(&mut self.ready) {
            if let Some(part) = transmit.payload
                && !sends.is_open(part.token)
            {
                bytes.clear();
                continue;
            }
            if let Some(part) = transmit.payload
                && !protection.encrypts()
                && stays(transmit)
            {
                bytes.clear();
                bytes.extend_from_slice(transmit.head.as_bytes());
                let (from, length_bytes) = (part.offset_bytes as usize, part.length_bytes as usize);
                protection.tag_apart(bytes, length_bytes, |see| {
                    sends.show(part.token, from, length_bytes, see);
                });
                continue;
            }
            // Datagrams of a stream are all of one length, so this rarely has to write zeros.
            bytes.resize(transmit.length_bytes(), 0);
            let (head, payload) = bytes.split_at_mut(transmit.head.as_bytes().len());
            head.copy_from_slice(transmit.head.as_bytes());
            let length_bytes = payload.len() - usize::from(transmit.padding_bytes);
            let (payload, padding) = payload.split_at_mut(length_bytes);
            padding.fill(0);
            if let Some(part) = transmit.payload {
                sends.copy_to(part.token, part.offset_bytes as usize, payload);
            }
            protection.seal(bytes);
        }
    }

    /// The batch as [`Self::prepare`] has made it, of long datagrams the head; empty without a key.
    pub(crate) fn ready(&self) -> &[Vec<u8>] {
        &self.ready
    }

    /// Lets a datagram in, or not: then it is counted, and the user is told once.
    #[inline]
    pub(crate) fn admit<'d>(
        &'d mut self,
        from: SocketAddr,
        datagram: &'d [u8],
    ) -> Option<&'d [u8]> {
        let Some(protection) = &mut self.protection else {
            return Some(datagram);
        };
        if !protection.encrypts() {
            if protection.check(datagram).is_ok() {
                return Some(datagram);
            }
        } else {
            self.opened.clear();
            self.opened.extend_from_slice(datagram);
            if let Ok(length) = protection.open(&mut self.opened) {
                return Some(&self.opened[..length]);
            }
        }
        self.report_rejected(from);
        None
    }

    #[cold]
    fn report_rejected(&mut self, from: SocketAddr) {
        if !std::mem::replace(&mut self.reported, true) {
            (self.report)(&format!(
                "a datagram from {from} was dropped, as all such will be: it is not of this job, \
                 or was changed on its way. If no messages come from there, give all processes the \
                 same FI_WEFT_JOB_KEY and FI_WEFT_ENCRYPT"
            ));
        }
    }
}

/// Whether a payload may leave from where it lies: it is long, and leaves for the first time. One
/// that its owner keeps writing to gets through with the copy that is sent again.
fn stays(transmit: &Transmit) -> bool {
    let again = transmit.head.is_retransmission();
    transmit.length_bytes() > COPIED_BYTES && !again && transmit.padding_bytes == 0
}
