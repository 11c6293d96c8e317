// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What has been announced or handed to the owner and is not settled: offers, landings, kept
//! messages. Filled and emptied by driver.rs and by the owner's calls in transport.rs.

use slab::Slab;
use weft_contract::{Landing, LandingToken};
use weft_srd::{Message, Offer, Remote};

/// A message that was announced and not accepted, or that came whole and about which the owner may
/// still have to say something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) remote: Remote,
    /// Of which life of the remote.
    pub(crate) life: u32,
    pub(crate) message: Message,
}

impl Offered {
    pub(crate) fn new(remote: Remote, life: u32, message: Message) -> Self {
        Self {
            remote,
            life,
            message,
        }
    }

    pub(crate) fn offer(&self) -> Offer {
        Offer {
            remote: self.remote,
            life: self.life,
            message_id: self.message.id,
        }
    }
}

/// A matched receive that is being filled; `None` for a message that is discarded.
#[derive(Debug)]
pub(crate) struct Filling {
    pub(crate) landing: Option<Landing>,
    pub(crate) offered: Offered,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The index is the owner's `OfferId`.
    pub(crate) offers: Slab<Offered>,
    /// The index is the machine's name for the landing.
    pub(crate) fillings: Slab<Filling>,
    /// The index is the owner's `AckToken`.
    pub(crate) kept: Slab<Offered>,
    /// Fillings for which the machine had no room yet.
    pub(crate) waiting: Vec<usize>,
    /// Landings for offers that were void already.
    pub(crate) void: Vec<LandingToken>,
}
