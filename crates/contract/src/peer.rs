// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two traits between owner and transports, after fi_peer(3): the owner matches, the peer moves
//! bytes.

use std::net::SocketAddr;

use weft_memory::{BytesView, UserBuffer};

use crate::{Envelope, PostError, RemoteId, SendOp, SendToken, TransferError, TurnedAway};

/// What became of a send that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// Complete at the level asked for; the buffer is the user's again. `on_sent` will not be
    /// called.
    Complete,
    /// Under way; `on_sent` follows, exactly once.
    Pending,
}

/// When a message to a remote would leave whole, and then need its sender no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// At once.
    Now,
    /// After a few rounds of progress.
    Soon,
    /// Nobody can tell.
    Unknown,
}

/// Bits of an [`OfferId`] or [`AckToken`] that are the route's own, from the lowest on. The
/// endpoint keeps in the others which of its routes it came from. Chosen: more than any table has
/// entries.
pub const ROUTE_ID_BITS: u32 = 56;

/// A route's name for a message that was announced but whose payload is not at hand yet, of
/// [`ROUTE_ID_BITS`] bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OfferId(pub u64);

/// A route's name for a delivery receipt that the sender waits for (FI_DELIVERY_COMPLETE), of
/// [`ROUTE_ID_BITS`] bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AckToken(pub u64);

/// The owner's name for a matched receive that a transport fills; handed back in
/// [`Owner::on_landed`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LandingToken(pub u64);

/// Where an offered message goes: a matched receive. A transport writes at most
/// `buffer.length_bytes()` and drops what is longer; truncation is the owner's to report.
#[derive(Debug)]
pub struct Landing {
    /// Named in `on_landed`.
    pub token: LandingToken,
    /// The user's buffer, ours until `on_landed`.
    pub buffer: UserBuffer,
}

/// What a transport tells the owner while it makes progress. Fast path; must not call back into the
/// peer.
pub trait Owner {
    /// A whole message is at hand. The owner copies `payload` into the matched receive and
    /// completes it, or keeps a copy as unexpected. Answers true if it was delivered; false if it
    /// was kept, in which case the owner later calls [`Peer::acknowledge`] with `ack`, if there was
    /// one.
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool;

    /// A message is announced whose payload comes later. `Some` names where it goes at once; `None`
    /// means it is unexpected, and the owner will call [`Peer::accept`] or [`Peer::discard`] for
    /// `offer`, exactly once.
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing>;

    /// The first bytes of a message are at hand, the others are under way. `Some` if a receive
    /// waits for it: the message is written there as it arrives, and [`Self::on_landed`] follows.
    /// `None` by default, and where no receive waits: then the message comes whole, by
    /// [`Self::on_message`].
    #[inline]
    fn on_begun(&mut self, _: &Envelope) -> Option<Landing> {
        None
    }

    /// The payload of an accepted offer, or of a message that had begun, is in its landing, or
    /// failed.
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>);

    /// A pending send is complete, or failed.
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>);

    /// A remote is gone: no more will come from it. Offers of it that were not accepted are void;
    /// the owner drops them and fails the receives that name this remote.
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError);

    /// A remote cannot be reached this way, though it may live. What it has not received is the
    /// owner's again, to be sent another way before any later send to it; the transport takes no
    /// more for it. An owner without another way lets all fail, as by default. Slow path.
    #[cold]
    fn on_turned_away(&mut self, turned: TurnedAway) {
        for send in turned.sends {
            self.on_sent(send.op.token, Err(turned.why));
        }
        self.on_remote_lost(turned.remote, turned.why);
    }

    /// The id for an address that contacted us first. Slow path.
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId;
}

/// What a transport does for the owner. All calls of one peer come from one thread at a time.
pub trait Peer {
    /// Starts a send. Fast path for small messages.
    ///
    /// # Errors
    /// [`PostError::Busy`] when there is no room now; [`PostError::Failed`] when there never will
    /// be.
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError>;

    /// Whether a message of so many bytes would leave at once and need its sender no more, as far
    /// as can be told. Slow path.
    fn readiness(&mut self, _: RemoteId, _length_bytes: usize) -> Readiness {
        Readiness::Unknown
    }

    /// Takes delivery of an offered message. Completes in a later `progress`, never inside this
    /// call.
    fn accept(&mut self, offer: OfferId, landing: Landing);

    /// Refuses an offered message; its sender sees it as delivered (FI_DISCARD).
    fn discard(&mut self, offer: OfferId);

    /// Sends the receipt of a message that was kept and has now been delivered.
    fn acknowledge(&mut self, ack: AckToken);

    /// Lets a round of progress pass in which there is nothing to do, where a few instructions can
    /// say so; else does nothing, and says false: call `progress`. Fast path.
    fn pass(&mut self) -> bool {
        false
    }

    /// Says whether who makes progress waits for nothing that comes another way: then one call may
    /// look several times. Fast path.
    fn set_undisturbed(&mut self, _: bool) {}

    /// Moves everything that can move without waiting; answers how many events there were. Fast
    /// path.
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize;
}
