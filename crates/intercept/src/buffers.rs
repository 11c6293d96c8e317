// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The data that a call describes by an address, a count and a datatype, as plain bytes. Elements
//! of predefined types are taken where they lie; others are packed and unpacked by the MPI, so that
//! a rank may describe the same data otherwise than another does. Called by movement and reduction.
//! Source: MPI 4.1, 5.2 (packing).

use std::ffi::{c_int, c_void};

use weft_memory::{BytesView, BytesViewMut};

use crate::functions::Handle;
use crate::mpi::Mpi;

/// Longest data of one call, all ranks' together, that are served. Chosen: every count fits a C
/// `int`, and beyond it nothing is won.
pub const LONGEST_BYTES: usize = 1 << 30;

/// Data as a program describes them.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    address: *mut c_void,
    count: i64,
    kind: usize,
}

impl Data {
    /// An address, how many elements, and their datatype, as the program passed them.
    #[inline]
    pub fn new(address: *const c_void, count: impl Into<i64>, kind: usize) -> Self {
        Self {
            address: address.cast_mut(),
            count: count.into(),
            kind,
        }
    }

    /// The address.
    pub fn address(&self) -> *const c_void {
        self.address
    }

    /// The datatype.
    pub fn kind(&self) -> usize {
        self.kind
    }

    /// The same data so many times, one behind the other.
    pub fn times(self, times: usize) -> Option<Self> {
        Some(Self {
            count: self.count.checked_mul(i64::try_from(times).ok()?)?,
            ..self
        })
    }

    /// The same, elsewhere.
    pub fn at(self, address: *const c_void) -> Self {
        Self {
            address: address.cast_mut(),
            ..self
        }
    }

    /// What they are to this MPI; `None` if they are for the MPI to refuse, or too long.
    #[inline]
    pub fn checked(self, mpi: &Mpi) -> Option<Checked> {
        let kind = mpi.handle(self.kind);
        let count = c_int::try_from(self.count)
            .ok()
            .filter(|&count| count >= 0)?;
        let known = mpi.datatypes.known(kind);
        let size_bytes = match known {
            Some(known) => known.size_bytes,
            None if kind == mpi.datatypes.null => return None,
            None => {
                let mut size_bytes = 0;
                // SAFETY: the program's own type, and a place of ours.
                let code = unsafe { (mpi.functions.type_size)(kind, &mut size_bytes) };
                usize::try_from(size_bytes).ok().filter(|_| code == 0)?
            }
        };
        let bytes = size_bytes.checked_mul(count as usize)?;
        let is_there = known.is_none() || bytes == 0 || !self.address.is_null();
        (bytes <= LONGEST_BYTES && is_there).then_some(Checked {
            address: self.address,
            count,
            kind,
            bytes,
            is_plain: known.is_some(),
        })
    }
}

/// Data that can be served.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    address: *mut c_void,
    count: c_int,
    kind: Handle,
    /// How many bytes of payload.
    pub bytes: usize,
    is_plain: bool,
}

/// Where the bytes of data are while a call lasts: in place, or in a copy.
#[derive(Debug)]
pub enum Bytes {
    /// Where the program has them.
    InPlace(*mut u8, usize),
    /// Packed.
    Copy(Vec<u8>),
}

impl Bytes {
    /// To be read.
    ///
    /// # Safety
    /// What was promised to [`Checked::read`] must still hold.
    pub unsafe fn view(&self) -> BytesView<'_> {
        match self {
            // SAFETY: the caller's promise.
            Self::InPlace(base, bytes) => unsafe { BytesView::from_raw(*base, *bytes) },
            Self::Copy(copy) => BytesView::from_slice(copy),
        }
    }

    /// To be written.
    ///
    /// # Safety
    /// What was promised to [`Checked::written`] must still hold.
    pub unsafe fn view_mut(&mut self) -> BytesViewMut<'_> {
        match self {
            // SAFETY: the caller's promise.
            Self::InPlace(base, bytes) => unsafe { BytesViewMut::from_raw(*base, *bytes) },
            Self::Copy(copy) => BytesViewMut::from_slice(copy),
        }
    }
}

impl Checked {
    /// The bytes, to be read.
    ///
    /// # Safety
    /// The address must be readable as count and datatype say.
    pub unsafe fn read(&self, mpi: &Mpi) -> Result<Bytes, c_int> {
        if self.is_plain {
            return Ok(Bytes::InPlace(self.address.cast(), self.bytes));
        }
        let mut copy = vec![0u8; self.bytes];
        let (mut at, room) = (0, self.bytes as c_int);
        // SAFETY: the caller's promise; the copy has the room that is named.
        let code = unsafe {
            (mpi.functions.pack)(
                self.address,
                self.count,
                self.kind,
                copy.as_mut_ptr().cast(),
                room,
                &mut at,
                mpi.communicators.own,
            )
        };
        if code == 0 {
            Ok(Bytes::Copy(copy))
        } else {
            Err(code)
        }
    }

    /// Room for the bytes, which [`Self::written`] puts where they belong.
    ///
    /// # Safety
    /// The address must be writable as count and datatype say.
    pub unsafe fn room(&self) -> Bytes {
        if self.is_plain {
            Bytes::InPlace(self.address.cast(), self.bytes)
        } else {
            Bytes::Copy(vec![0u8; self.bytes])
        }
    }

    /// Puts the bytes that were written into the room where they belong.
    ///
    /// # Safety
    /// As [`Self::room`].
    pub unsafe fn written(&self, mpi: &Mpi, room: Bytes) -> c_int {
        let Bytes::Copy(copy) = room else {
            return 0;
        };
        let mut at = 0;
        // SAFETY: the caller's promise; the copy has the length that is named.
        unsafe {
            (mpi.functions.unpack)(
                copy.as_ptr().cast(),
                copy.len() as c_int,
                &mut at,
                self.address,
                self.count,
                self.kind,
                mpi.communicators.own,
            )
        }
    }
}
