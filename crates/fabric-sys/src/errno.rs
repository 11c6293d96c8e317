// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Error numbers: positive here, returned negated by calls, stored positive in error completions.
//!
//! Used by the provider's errno module. Numbers below 256 are the system's own. Source:
//! fi_errno(3), fi_errno.h.

use libc::c_int;

/// Nothing went wrong.
pub const FI_SUCCESS: c_int = 0;
/// The name or object does not exist.
pub const FI_ENOENT: c_int = libc::ENOENT;
/// Input or output failed below.
pub const FI_EIO: c_int = libc::EIO;
/// The list is longer than the limit.
pub const FI_E2BIG: c_int = libc::E2BIG;
/// Nothing to report yet, or no room yet: call again.
pub const FI_EAGAIN: c_int = libc::EAGAIN;
/// No memory.
pub const FI_ENOMEM: c_int = libc::ENOMEM;
/// The object is still in use.
pub const FI_EBUSY: c_int = libc::EBUSY;
/// An argument is wrong.
pub const FI_EINVAL: c_int = libc::EINVAL;
/// No room.
pub const FI_ENOSPC: c_int = libc::ENOSPC;
/// The call is not implemented.
pub const FI_ENOSYS: c_int = libc::ENOSYS;
/// No message matches.
pub const FI_ENOMSG: c_int = libc::ENOMSG;
/// Nothing fits the hints.
pub const FI_ENODATA: c_int = libc::ENODATA;
/// The message is larger than the limit.
pub const FI_EMSGSIZE: c_int = libc::EMSGSIZE;
/// The option is not known.
pub const FI_ENOPROTOOPT: c_int = libc::ENOPROTOOPT;
/// The operation is not supported here.
pub const FI_EOPNOTSUPP: c_int = libc::EOPNOTSUPP;
/// The address is taken.
pub const FI_EADDRINUSE: c_int = libc::EADDRINUSE;
/// The address does not exist here.
pub const FI_EADDRNOTAVAIL: c_int = libc::EADDRNOTAVAIL;
/// The other side is gone.
pub const FI_ECONNRESET: c_int = libc::ECONNRESET;
/// The other side was never there.
pub const FI_ECONNREFUSED: c_int = libc::ECONNREFUSED;
/// The time is over.
pub const FI_ETIMEDOUT: c_int = libc::ETIMEDOUT;
/// The other side cannot be reached.
pub const FI_EHOSTUNREACH: c_int = libc::EHOSTUNREACH;
/// The operation was cancelled.
pub const FI_ECANCELED: c_int = libc::ECANCELED;

/// Some other error.
pub const FI_EOTHER: c_int = 256;
/// The buffer is too small; the length needed is stored.
pub const FI_ETOOSMALL: c_int = 257;
/// Not possible in this state.
pub const FI_EOPBADSTATE: c_int = 258;
/// An error completion is waiting to be read.
pub const FI_EAVAIL: c_int = 259;
/// A flag is not supported.
pub const FI_EBADFLAGS: c_int = 260;
/// No event queue is bound.
pub const FI_ENOEQ: c_int = 261;
/// Objects of different domains were mixed.
pub const FI_EDOMAIN: c_int = 262;
/// No completion queue is bound.
pub const FI_ENOCQ: c_int = 263;
/// The message is longer than the receive buffer.
pub const FI_ETRUNC: c_int = 265;
/// The memory key is not known.
pub const FI_ENOKEY: c_int = 266;
/// No address vector is bound.
pub const FI_ENOAV: c_int = 267;
/// A queue overflowed.
pub const FI_EOVERRUN: c_int = 268;
