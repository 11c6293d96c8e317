// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two traits between owner and transports, after fi_peer(3): the owner matches, the peer moves
//! bytes.

use std::net::SocketAddr;

use weft_memory::{BytesView, UserBuffer};

use crate::{Envelope, PostError, RemoteId, SendOp, SendToken, TransferError, TurnedAway};

/// What became of a send that the transport took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// Complete at the level asked for; the buffer is the user's again. `on_sent` will not be
    /// called.
    Complete,
    /// Under way; `on_sent` follows, exactly once.
    Pending,
}

/// When all of a message would leave, so that its sender may compute afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// At once.
    Now,
    /// After a few rounds of progress.
    Soon,
    /// The transport cannot tell.
    Unknown,
}

/// How many of the low bits of an [`OfferId`] or [`AckToken`] belong to the route. In the other
/// bits the endpoint keeps from which of its routes the id came. Chosen: so many bits count more
/// than any table has entries.
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
// structure: allow trait-methods because each is an event of its own that every route can bring
pub trait Owner {
    /// A whole message is at hand. The owner copies `payload` into the matched receive and
    /// completes the receive, or keeps a copy as an unexpected message. Returns true if the message
    /// was delivered. Returns false if it was kept; then the owner later calls
    /// [`Peer::acknowledge`] with `ack`, if there is one.
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool;

    /// A message is announced whose payload comes later. The owner returns `Some` with the place of
    /// the matched receive, where the payload goes at once. `None` means that the message is
    /// unexpected; then the owner later calls [`Peer::accept`] or [`Peer::discard`] for `offer`,
    /// exactly once.
    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing>;

    /// The first bytes of a message are at hand, the others are under way. The owner returns `Some`
    /// if a receive waits for the message: the transport writes the message there as it arrives,
    /// and [`Self::on_landed`] follows. It returns `None` by default, and if no receive waits: then
    /// the message comes whole, by [`Self::on_message`].
    #[inline]
    fn on_begun(&mut self, _: &Envelope) -> Option<Landing> {
        None
    }

    /// The whole payload of an accepted offer, or of a message that had begun, is in its landing;
    /// or the transfer failed.
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>);

    /// A pending send is complete, or failed.
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>);

    /// The whole payload of an offer that was not accepted yet is here, and its sender is about to
    /// be lost: [`Self::on_remote_lost`] follows. The owner keeps a copy; it neither accepts nor
    /// discards this offer any more. So what was reported as sent gets to its receive, though that
    /// is posted later. By default the offer is lost with its sender. Slow path.
    #[cold]
    fn on_arrived(&mut self, _: RemoteId, _: OfferId, _payload: BytesView<'_>) {}

    /// A remote is lost: nothing more will come from it. Its other offers that were not accepted
    /// are void; the owner drops them, and fails the receives that name this remote.
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError);

    /// The transport cannot reach a remote, which may live. It gives back to the owner the sends
    /// that the remote has not received, and takes no more sends to this remote. The owner posts
    /// them to another route, before any later send to the remote. Without another route they fail,
    /// as by default. Slow path.
    #[cold]
    fn on_turned_away(&mut self, turned: TurnedAway) {
        for send in turned.sends {
            self.on_sent(send.op.token, Err(turned.why));
        }
        self.on_remote_lost(turned.remote, turned.why);
    }

    /// The id of a process that contacted us first, by its address. Slow path.
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

    /// When a message of this length would leave as a whole, as far as can be told. Slow path.
    fn readiness(&mut self, _: RemoteId, _length_bytes: usize) -> Readiness {
        Readiness::Unknown
    }

    /// Accepts an offered message into `landing`. The transfer ends in a later `progress`, never
    /// inside this call.
    fn accept(&mut self, offer: OfferId, landing: Landing);

    /// Refuses an offered message; its sender sees it as delivered (FI_DISCARD).
    fn discard(&mut self, offer: OfferId);

    /// Sends the receipt of a message that was kept and has now been delivered.
    fn acknowledge(&mut self, ack: AckToken);

    /// Returns true if a few instructions show that this round of progress has nothing to do; the
    /// round is over then. Else returns false, and the caller must call `progress`. Fast path.
    fn pass(&mut self) -> bool {
        false
    }

    /// Tells the transport whether the process seems to wait only for messages of this route: then
    /// one call of `progress` may look for messages several times. Fast path.
    fn set_undisturbed(&mut self, _: bool) {}

    /// Does all work that can be done without waiting; returns how many events there were. Fast
    /// path.
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize;
}
