// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the words of the endpoint crate to libfabric's error numbers, and from the provider's own
//! numbers to words.
//!
//! Called by every module at the edge to C. Source: fi_errno(3), fi_cq(3) for `prov_errno`.

use std::ffi::{CStr, c_char, c_int, c_void};

use weft_endpoint::{Error, TransferError};
use weft_fabric_sys::errno::*;

/// libfabric's number for an error, positive.
#[cold]
pub fn number(error: Error) -> c_int {
    match error {
        Error::Again => FI_EAGAIN,
        Error::ErrorAvailable => FI_EAVAIL,
        Error::Invalid => FI_EINVAL,
        Error::NoSuch => FI_ENOENT,
        Error::Busy => FI_EBUSY,
        Error::BadState => FI_EOPBADSTATE,
        Error::NotBound => FI_ENOCQ,
        Error::TooLong | Error::Transfer(TransferError::TooLong) => FI_EMSGSIZE,
        Error::TooSmall => FI_ETOOSMALL,
        Error::NoMessage => FI_ENOMSG,
        Error::Truncated => FI_ETRUNC,
        Error::Canceled | Error::Transfer(TransferError::Canceled) => FI_ECANCELED,
        Error::Unsupported => FI_EOPNOTSUPP,
        Error::KeyInUse => FI_ENOKEY,
        Error::KeyRejected => libc::EKEYREJECTED,
        Error::AccessDenied => libc::EACCES,
        Error::OutOfRange => FI_EINVAL,
        Error::AddressInUse => FI_EADDRINUSE,
        Error::AddressNotAvailable => FI_EADDRNOTAVAIL,
        Error::NoResources | Error::Transfer(TransferError::NoMemory) => FI_ENOMEM,
        Error::Transfer(TransferError::RemoteLost) => FI_ECONNRESET,
        Error::Transfer(TransferError::Unreachable) => FI_EHOSTUNREACH,
        Error::Transfer(TransferError::VersionMismatch) => libc::EPROTO,
        Error::Transfer(TransferError::NotPermitted) => libc::EACCES,
        Error::Transfer(TransferError::Corrupt) => FI_EIO,
    }
}

/// The answer of a call that returns `int`.
#[inline(always)]
pub fn code(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => FI_SUCCESS,
        Err(error) => -number(error),
    }
}

/// The answer of a call that returns `ssize_t`. Fast path.
#[inline(always)]
pub fn long_code(result: Result<(), Error>) -> isize {
    match result {
        Ok(()) => FI_SUCCESS as isize,
        Err(Error::Again) => -(FI_EAGAIN as isize),
        Err(error) => -(number(error) as isize),
    }
}

/// The answer of a call that returns a count. Fast path.
#[inline(always)]
pub fn count_code(result: Result<usize, Error>) -> isize {
    match result {
        Ok(count) => count as isize,
        Err(Error::Again) => -(FI_EAGAIN as isize),
        Err(error) => -(number(error) as isize),
    }
}

/// The provider's own numbers (`prov_errno`): one for each way a transfer fails that libfabric's
/// number may blur.
const WORDS: [(Error, &CStr); 13] = [
    (Error::KeyRejected, c"the key names no region of the remote"),
    (
        Error::AccessDenied,
        c"the region does not permit this access",
    ),
    (Error::OutOfRange, c"the range reaches beyond the region"),
    (
        Error::Truncated,
        c"the message is longer than the receive buffer",
    ),
    (Error::Canceled, c"the operation was canceled"),
    (Error::NoMessage, c"no message matches"),
    (
        Error::NoResources,
        c"the system refused memory or descriptors",
    ),
    (
        Error::Transfer(TransferError::RemoteLost),
        c"the remote process died or closed its endpoint",
    ),
    (
        Error::Transfer(TransferError::Unreachable),
        c"no route leads to the remote",
    ),
    (
        Error::Transfer(TransferError::VersionMismatch),
        c"the remote runs another version of Weft",
    ),
    (
        Error::Transfer(TransferError::NotPermitted),
        c"the remote belongs to another user",
    ),
    (
        Error::Transfer(TransferError::Corrupt),
        c"the remote broke the protocol",
    ),
    (
        Error::Transfer(TransferError::NoMemory),
        c"no memory for the transfer",
    ),
];

/// The provider's own number for an error, counted from 1; 0 if libfabric's number tells
/// everything.
pub fn provider_number(error: Error) -> c_int {
    WORDS
        .iter()
        .position(|(known, _)| *known == error)
        .map_or(0, |index| index as c_int + 1)
}

/// What a provider's number means.
pub fn words(provider_number: c_int) -> &'static CStr {
    let index = usize::try_from(provider_number)
        .ok()
        .and_then(|number| number.checked_sub(1));
    index
        .and_then(|index| WORDS.get(index))
        .map_or(c"no further detail", |(_, words)| words)
}

/// The result of the strerror calls: the text, which is also copied into the application's buffer
/// as far as it fits.
///
/// # Safety
/// `buffer` must be null or writable for `length_bytes`.
pub unsafe fn describe(
    provider_number: c_int,
    buffer: *mut c_char,
    length_bytes: usize,
) -> *const c_char {
    let words = words(provider_number);
    if buffer.is_null() || length_bytes == 0 {
        return words.as_ptr();
    }
    let count = words.count_bytes().min(length_bytes - 1);
    // SAFETY: the words are longer than count, the buffer has room for count and the final 0
    // (contract).
    unsafe {
        std::ptr::copy_nonoverlapping(words.as_ptr(), buffer, count);
        *buffer.add(count) = 0;
    }
    buffer
}

/// `fi_cq_strerror` and `fi_eq_strerror`. `F` is the type of the queue, which is not read.
///
/// # Safety
/// The buffer must be null or writable for its length.
pub unsafe extern "C" fn strerror<F>(
    _: *mut F,
    number: c_int,
    _: *const c_void,
    buffer: *mut c_char,
    length: usize,
) -> *const c_char {
    // SAFETY: the application's buffer is null or writable for its length (fi_cq(3), fi_eq(3)).
    unsafe { describe(number, buffer, length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_own_number_leads_back_to_its_words() {
        for (error, text) in WORDS {
            assert_eq!(words(provider_number(error)), text);
            assert_eq!(
                text.to_str().expect("ASCII"),
                error.to_string(),
                "the endpoint crate says it alike"
            );
        }
        for unknown in [0, -1, c_int::MIN, WORDS.len() as c_int + 1] {
            assert_eq!(words(unknown), c"no further detail");
        }
    }

    #[test]
    fn words_are_cut_to_the_buffer_and_end_with_zero() {
        let mut buffer = [b'x' as c_char; 8];
        let truncated = provider_number(Error::Truncated);
        // SAFETY: the buffer is as long as said.
        let answer = unsafe { describe(truncated, buffer.as_mut_ptr(), buffer.len()) };
        // SAFETY: the buffer holds a C string now.
        assert_eq!(unsafe { CStr::from_ptr(answer) }, c"the mes");
    }
}
