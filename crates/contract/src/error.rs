// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How transfers fail. Small and `Copy`; mapped to FI_E* numbers only in the provider.

use core::fmt;

/// Why a send was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostError {
    /// No room just now: flow control, not a failure. Make progress and try again (-FI_EAGAIN).
    Busy,
    /// The remote cannot be reached, now or later.
    Failed(TransferError),
}

/// Why a transfer that was under way, or a remote as a whole, failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferError {
    /// The remote process died or closed its endpoint.
    RemoteLost,
    /// No route leads to the remote.
    Unreachable,
    /// The remote runs a Weft whose memory layout or protocol differs.
    VersionMismatch,
    /// The remote belongs to another user, or does not hold the job's key.
    NotPermitted,
    /// What the remote wrote contradicts the protocol.
    Corrupt,
    /// Memory for the transfer could not be had.
    NoMemory,
    /// The message is longer than any route carries ([`crate::MESSAGE_LIMIT_BYTES`]).
    TooLong,
    /// The operation was canceled by the user.
    Canceled,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RemoteLost => "the remote process died or closed its endpoint",
            Self::Unreachable => "no route leads to the remote",
            Self::VersionMismatch => "the remote runs another version of Weft",
            Self::NotPermitted => "the remote belongs to another user",
            Self::Corrupt => "the remote broke the protocol",
            Self::NoMemory => "no memory for the transfer",
            Self::TooLong => {
                "the message is longer than 1 TiB, the longest there can be (max_msg_size)"
            }
            Self::Canceled => "the operation was canceled",
        })
    }
}

impl core::error::Error for TransferError {}

impl From<TransferError> for PostError {
    fn from(error: TransferError) -> Self {
        Self::Failed(error)
    }
}
