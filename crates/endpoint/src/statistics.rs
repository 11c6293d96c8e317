// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint counts, for reports. Counted in send.rs and completion.rs, read through the
//! domain.

/// Counts since the endpoint was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages sent, by whatever call; counted when the transport took them.
    pub sent_count: u64,
    /// Bytes of those messages.
    pub sent_bytes: u64,
    /// Messages received: matched and delivered, truncated ones included.
    pub received_count: u64,
    /// Bytes of those messages that were delivered.
    pub received_bytes: u64,
    /// Messages that arrived before their receive was posted.
    pub unexpected_count: u64,
    /// Operations that failed; neither those that were canceled nor peeks that found nothing.
    pub error_count: u64,
}

/// What waits in matching now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// Receives posted and not matched, both with and without tags.
    pub posted_count: usize,
    /// Messages that no receive was posted for yet.
    pub unexpected_count: usize,
}

/// All that is counted for one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics<R> {
    /// What the endpoint itself counted.
    pub counts: Counts,
    /// What waits now.
    pub waiting: Waiting,
    /// What its local transport counted; none before the endpoint is enabled.
    pub local: Option<R>,
}
