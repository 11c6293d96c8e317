// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How calls into the domain, and operations that were under way, fail. Mapped to FI_E* in the
//! provider.

use core::fmt;

use weft_contract::{PostError, RouteErrorKind, TransferError};

/// What went wrong. The name in parentheses is the libfabric error it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Nothing to return, or no room, at the moment: make progress and try again (FI_EAGAIN).
    Again,
    /// The next entry of the queue is an error; read it with `read_error` (FI_EAVAIL).
    ErrorAvailable,
    /// An argument contradicts the man page (FI_EINVAL).
    Invalid,
    /// No object, address or operation of that name (FI_ENOENT).
    NoSuch,
    /// The object is still in use by another (FI_EBUSY).
    Busy,
    /// The endpoint is not enabled yet; or it is enabled, and the call must come before that
    /// (FI_EOPBADSTATE).
    BadState,
    /// The endpoint lacks the binding that the call needs (FI_ENOCQ, FI_ENOAV).
    NotBound,
    /// The message is longer than the limit of the call: the inject limit, or 1 TiB (FI_EMSGSIZE).
    TooLong,
    /// The buffer for the answer is too small (FI_ETOOSMALL).
    TooSmall,
    /// A peek found no message (FI_ENOMSG).
    NoMessage,
    /// The receive buffer was shorter than the message; the part that fits was delivered
    /// (FI_ETRUNC).
    Truncated,
    /// The operation was canceled (FI_ECANCELED).
    Canceled,
    /// Not offered (FI_EOPNOTSUPP).
    Unsupported,
    /// The address is taken by another endpoint or process (FI_EADDRINUSE).
    AddressInUse,
    /// The address does not belong to this host (FI_EADDRNOTAVAIL).
    AddressNotAvailable,
    /// The system refused memory, descriptors or the like (FI_ENOMEM).
    NoResources,
    /// A region has this key already (FI_ENOKEY).
    KeyInUse,
    /// The key names no region of the remote's (FI_EKEYREJECTED).
    KeyRejected,
    /// The remote's region may not be read, or not be written (FI_EACCES).
    AccessDenied,
    /// The range reaches beyond the remote's region (FI_EINVAL).
    OutOfRange,
    /// The transfer failed under way.
    Transfer(TransferError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Again => "nothing to return, or no room, at the moment",
            Self::ErrorAvailable => "the next entry of the queue is an error",
            Self::Invalid => "an argument is not valid",
            Self::NoSuch => "no such object",
            Self::Busy => "the object is still in use",
            Self::BadState => "the endpoint is not in the state that the call needs",
            Self::NotBound => "the endpoint lacks a binding that the call needs",
            Self::TooLong => "the message is longer than the limit for this call",
            Self::TooSmall => "the buffer for the answer is too small",
            Self::NoMessage => "no message matches",
            Self::Truncated => "the message is longer than the receive buffer",
            Self::Canceled => "the operation was canceled",
            Self::Unsupported => "not supported",
            Self::AddressInUse => "the address is in use",
            Self::AddressNotAvailable => "the address does not belong to this host",
            Self::NoResources => "the system refused memory or descriptors",
            Self::KeyInUse => "a region has this key already",
            Self::KeyRejected => "the key names no region of the remote",
            Self::AccessDenied => "the region does not permit this access",
            Self::OutOfRange => "the range reaches beyond the region",
            Self::Transfer(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for Error {}

impl From<TransferError> for Error {
    fn from(error: TransferError) -> Self {
        Self::Transfer(error)
    }
}

impl From<RouteErrorKind> for Error {
    fn from(kind: RouteErrorKind) -> Self {
        match kind {
            RouteErrorKind::AddressInUse => Self::AddressInUse,
            RouteErrorKind::AddressNotAvailable => Self::AddressNotAvailable,
            RouteErrorKind::Invalid => Self::Invalid,
            RouteErrorKind::NoResources => Self::NoResources,
        }
    }
}

/// Why a transport did not take a send, in our words.
#[cold]
pub(crate) fn refused(error: PostError) -> Error {
    match error {
        PostError::Busy => Error::Again,
        PostError::Failed(TransferError::TooLong) => Error::TooLong,
        PostError::Failed(error) => Error::Transfer(error),
    }
}
