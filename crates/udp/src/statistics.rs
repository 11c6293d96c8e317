// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this route has counted, for reports. Read by the endpoint.

/// Counts since the transport was opened; none of them ever falls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Messages sent, and their payload.
    pub sent_messages: u64,
    /// See `sent_messages`.
    pub sent_bytes: u64,
    /// Of them, those that were copied because their buffer had to be free at once.
    pub copied_messages: u64,
    /// Messages received, and their payload.
    pub received_messages: u64,
    /// See `received_messages`.
    pub received_bytes: u64,
    /// System calls made to send, and to receive.
    pub send_calls: u64,
    /// See `send_calls`.
    pub receive_calls: u64,
    /// Times that a socket had no room.
    pub blocked: u64,
    /// Answers that nobody has a port of a remote.
    pub refused: u64,
    /// Datagrams turned away: not of this job, or changed on their way.
    pub turned_away: u64,
    /// Remotes with which something was under way.
    pub remotes: u64,
    /// Remotes that were lost.
    pub lost: u64,
    /// What the machine counts: datagrams, retransmissions, losses, time-outs, paths.
    pub machine: weft_srd::Statistics,
}
