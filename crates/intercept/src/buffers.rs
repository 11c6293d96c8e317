// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The data that a call describes by an address, a count and a datatype, as plain bytes. Elements
//! of predefined types are taken where they lie; others are packed and unpacked by the MPI, so that
//! a rank may describe the same data otherwise than another does. Called by movement, exchange,
//! parts and reduction. Source: MPI 4.1, 5.2 (packing).

use std::ffi::{c_int, c_void};

use weft_memory::{BytesView, BytesViewMut};

use crate::functions::Handle;
use crate::gaps::Gaps;
use crate::mpi::Mpi;
use crate::outcome::Stop;

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
    #[inline]
    pub fn address(&self) -> *const c_void {
        self.address
    }

    /// The datatype.
    #[inline]
    pub fn kind(&self) -> usize {
        self.kind
    }

    /// The same data so many times, one behind the other.
    ///
    /// # Errors
    /// [`Stop::Left`] if they are too long.
    #[inline]
    pub fn times(self, times: usize) -> Result<Self, Stop> {
        let times = i64::try_from(times).map_err(|_| Stop::Left)?;
        Ok(Self {
            count: self.count.checked_mul(times).ok_or(Stop::Left)?,
            ..self
        })
    }

    /// The same, elsewhere.
    #[inline]
    pub fn at(self, address: *const c_void) -> Self {
        Self {
            address: address.cast_mut(),
            ..self
        }
    }

    /// What they are to this MPI.
    ///
    /// # Errors
    /// [`Stop::Left`] if they are for the MPI to refuse, or too long.
    #[inline]
    pub fn checked(self, mpi: &Mpi) -> Result<Checked, Stop> {
        if mpi.is_in_place(self.address) {
            return Err(Stop::Left);
        }
        Element::of(mpi, self.kind)?.times(self.address, self.count)
    }
}

/// How elements lie in the program's memory, and so how their bytes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Side by side: they are taken where they lie.
    Plain,
    /// As the MPI knows, which packs and unpacks them.
    Packed,
    /// As pairs with gaps, which are copied with them.
    Gaps(Gaps),
}

/// A datatype as far as data are described by it.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    kind: Handle,
    /// Bytes of payload.
    size_bytes: usize,
    layout: Layout,
}

impl Element {
    /// What a datatype that the program passed is to this MPI.
    ///
    /// # Errors
    /// [`Stop::Left`] if it is for the MPI to refuse.
    #[inline]
    pub fn of(mpi: &Mpi, passed: usize) -> Result<Self, Stop> {
        let kind = mpi.handle(passed);
        if let Some(known) = mpi.datatypes.known(kind) {
            return Ok(Self {
                kind,
                size_bytes: known.size_bytes,
                layout: match known.gaps {
                    None => Layout::Plain,
                    Some(_) => Layout::Packed,
                },
            });
        }
        if kind == mpi.datatypes.null {
            return Err(Stop::Left);
        }
        let mut size_bytes = 0;
        // SAFETY: the program's own type, and a place of ours.
        let code = unsafe { (mpi.functions.type_size)(kind, &mut size_bytes) };
        let size_bytes = usize::try_from(size_bytes).ok().filter(|_| code == 0);
        if !is_committed(mpi, kind) {
            return Err(Stop::Left);
        }
        Ok(Self {
            kind,
            size_bytes: size_bytes.ok_or(Stop::Left)?,
            layout: Layout::Packed,
        })
    }

    /// From one element to the next, in bytes.
    ///
    /// # Errors
    /// [`Stop::Left`] if the MPI does not say.
    pub fn stride_bytes(self, mpi: &Mpi) -> Result<i64, Stop> {
        if self.layout == Layout::Plain {
            return i64::try_from(self.size_bytes).map_err(|_| Stop::Left);
        }
        let (mut lowest, mut extent) = (0, 0);
        // SAFETY: a type that the MPI knows, and places of ours.
        let code = unsafe { (mpi.functions.type_extent)(self.kind, &mut lowest, &mut extent) };
        i64::try_from(extent)
            .ok()
            .filter(|_| code == 0)
            .ok_or(Stop::Left)
    }

    /// So many of them at an address.
    ///
    /// # Errors
    /// [`Stop::Left`] if they are for the MPI to refuse, or too long.
    #[inline]
    pub fn times(self, address: *mut c_void, count: i64) -> Result<Checked, Stop> {
        let count = match self.size_bytes {
            // Data without bytes; another rank may describe them by a count of 0.
            0 if count > 0 => 0,
            _ => c_int::try_from(count).map_err(|_| Stop::Left)?,
        };
        let times = usize::try_from(count).map_err(|_| Stop::Left)?;
        let bytes = self.size_bytes.checked_mul(times).ok_or(Stop::Left)?;
        let is_there = self.layout != Layout::Plain || bytes == 0 || !address.is_null();
        if bytes > LONGEST_BYTES || !is_there {
            return Err(Stop::Left);
        }
        Ok(Checked {
            address,
            count,
            kind: self.kind,
            bytes,
            layout: self.layout,
        })
    }
}

/// Whether the MPI packs data of a type of the program's, which it may refuse (MPI 4.1, 5.1.9).
fn is_committed(mpi: &Mpi, kind: Handle) -> bool {
    let (mut at, given, mut room) = (0, [0u8; 1], [0u8; 1]);
    // SAFETY: the program's own type, places of ours, and no elements.
    let code = unsafe {
        let (given, room) = (given.as_ptr().cast(), room.as_mut_ptr().cast());
        (mpi.functions.pack)(given, 0, kind, room, 1, &mut at, mpi.quiet())
    };
    code == 0
}

/// Data that can be served.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    address: *mut c_void,
    count: c_int,
    kind: Handle,
    /// How many bytes of payload; of pairs with gaps, the gaps included.
    pub bytes: usize,
    layout: Layout,
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
    /// None.
    pub const NONE: Self = Self::Copy(Vec::new());

    /// How many there are.
    pub fn length_bytes(&self) -> usize {
        match self {
            Self::InPlace(_, bytes) => *bytes,
            Self::Copy(copy) => copy.len(),
        }
    }

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
    /// Where they begin, if they lie side by side.
    pub fn base(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Whether they lie side by side, in place.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.layout == Layout::Plain
    }

    /// Whether the MPI packs them.
    pub fn is_packed(&self) -> bool {
        self.layout == Layout::Packed
    }

    /// The gaps that are copied with them.
    #[inline]
    pub fn gaps(&self) -> Option<Gaps> {
        match self.layout {
            Layout::Gaps(gaps) => Some(gaps),
            Layout::Plain | Layout::Packed => None,
        }
    }

    /// The same pairs with the gaps among them.
    ///
    /// # Errors
    /// [`Stop::Left`] if they are nowhere, or too long.
    pub fn with_gaps(self, gaps: Gaps) -> Result<Self, Stop> {
        let count = usize::try_from(self.count).map_err(|_| Stop::Left)?;
        let bytes = count.checked_mul(gaps.extent_bytes()).ok_or(Stop::Left)?;
        if bytes > LONGEST_BYTES || (bytes > 0 && self.address.is_null()) {
            return Err(Stop::Left);
        }
        Ok(Self {
            bytes,
            layout: Layout::Gaps(gaps),
            ..self
        })
    }

    /// So many times as many elements of the same kind, elsewhere.
    ///
    /// # Errors
    /// [`Stop::Left`] if they are too long.
    pub fn times_at(self, times: usize, address: *const c_void) -> Result<Self, Stop> {
        let count = c_int::try_from(times).map_err(|_| Stop::Left)?;
        let bytes = self.bytes.checked_mul(times).ok_or(Stop::Left)?;
        if bytes > LONGEST_BYTES {
            return Err(Stop::Left);
        }
        Ok(Self {
            address: address.cast_mut(),
            count: self.count.checked_mul(count).ok_or(Stop::Left)?,
            bytes,
            ..self
        })
    }

    /// The same data as one element of a new type, which the caller frees: it outlives the
    /// program's type.
    ///
    /// # Errors
    /// [`Stop::Code`].
    pub fn of_new_type(self, mpi: &Mpi) -> Result<(Self, Handle), Stop> {
        let mut made = 0;
        // SAFETY: the program's type, which is there as long as its call lasts, and places of ours.
        unsafe {
            succeeded((mpi.functions.type_contiguous)(
                self.count, self.kind, &mut made,
            ))?;
            succeeded((mpi.functions.type_commit)(&mut made))?;
        }
        let (count, kind) = (1, mpi.handle(made));
        Ok((
            Self {
                count,
                kind,
                ..self
            },
            kind,
        ))
    }

    /// The bytes, to be read.
    ///
    /// # Errors
    /// [`Stop::Unheard`]; [`Stop::Code`] if the MPI gives no type.
    ///
    /// # Safety
    /// The address must be readable as count and datatype say.
    pub unsafe fn read(&self, mpi: &Mpi) -> Result<Bytes, Stop> {
        // SAFETY: the caller's promise.
        unsafe {
            Ok(match self.layout {
                Layout::Plain => Bytes::InPlace(self.base(), self.bytes),
                Layout::Gaps(gaps) => Bytes::Copy(gaps.read(self.base(), self.bytes)),
                Layout::Packed => {
                    let mut copy = vec![0u8; self.bytes];
                    self.pack(mpi, &mut copy)?;
                    Bytes::Copy(copy)
                }
            })
        }
    }

    /// Packs them to the beginning of `room`, which has that many bytes or more.
    ///
    /// # Errors
    /// [`Stop::Unheard`]; [`Stop::Code`] if the MPI gives no type.
    ///
    /// # Safety
    /// As [`Self::read`].
    pub unsafe fn pack(&self, mpi: &Mpi, room: &mut [u8]) -> Result<(), Stop> {
        let mut at = 0;
        // SAFETY: the caller's promise about the data; the slice has the room that is named.
        self.as_it_may_be_packed(mpi, |data| unsafe {
            (mpi.functions.pack)(
                data.address,
                data.count,
                data.kind,
                room.as_mut_ptr().cast(),
                c_int::try_from(room.len()).unwrap_or(c_int::MAX),
                &mut at,
                mpi.quiet(),
            )
        })
    }

    /// Has them packed or unpacked as they are, or as one element: MPICH packs no more than one at
    /// MPI_BOTTOM, which is a null pointer there.
    fn as_it_may_be_packed(&self, mpi: &Mpi, act: impl FnOnce(Self) -> c_int) -> Result<(), Stop> {
        if !self.address.is_null() || self.count <= 1 {
            return is_packed(act(*self));
        }
        let (data, mut made) = self.of_new_type(mpi)?;
        let outcome = is_packed(act(data));
        // SAFETY: our own type, freed once.
        unsafe { (mpi.functions.type_free)(&mut made) };
        outcome
    }

    /// Room for the bytes, which [`Self::written`] puts where they belong.
    ///
    /// # Safety
    /// The address must be writable as count and datatype say.
    pub unsafe fn room(&self) -> Bytes {
        if self.is_plain() {
            Bytes::InPlace(self.base(), self.bytes)
        } else {
            Bytes::Copy(vec![0u8; self.bytes])
        }
    }

    /// Puts the bytes that were written into the room where they belong.
    ///
    /// # Errors
    /// [`Stop::Unheard`]; [`Stop::Code`] if the MPI gives no type.
    ///
    /// # Safety
    /// As [`Self::room`].
    pub unsafe fn written(&self, mpi: &Mpi, room: &Bytes) -> Result<(), Stop> {
        let Bytes::Copy(copy) = room else {
            return Ok(());
        };
        // SAFETY: the caller's promise.
        unsafe {
            match self.gaps() {
                Some(gaps) => {
                    gaps.write(copy, self.base());
                    Ok(())
                }
                None => self.unpack(mpi, copy),
            }
        }
    }

    /// Unpacks them from the beginning of `packed`.
    ///
    /// # Errors
    /// [`Stop::Unheard`]; [`Stop::Code`] if the MPI gives no type.
    ///
    /// # Safety
    /// As [`Self::room`].
    pub unsafe fn unpack(&self, mpi: &Mpi, packed: &[u8]) -> Result<(), Stop> {
        let mut at = 0;
        // SAFETY: the caller's promise; the slice has the length that is named.
        self.as_it_may_be_packed(mpi, |data| unsafe {
            (mpi.functions.unpack)(
                packed.as_ptr().cast(),
                c_int::try_from(packed.len()).unwrap_or(c_int::MAX),
                &mut at,
                data.address,
                data.count,
                data.kind,
                mpi.quiet(),
            )
        })
    }
}

/// What the MPI says of data on its communicator that returns errors.
fn is_packed(code: c_int) -> Result<(), Stop> {
    match code {
        0 => Ok(()),
        code => Err(Stop::Unheard(code)),
    }
}

fn succeeded(code: c_int) -> Result<(), Stop> {
    match code {
        0 => Ok(()),
        code => Err(Stop::Code(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank may describe data without bytes otherwise than the others do, and all must serve the
    /// call.
    #[test]
    fn more_elements_without_bytes_than_an_int_counts_are_no_bytes() {
        let element = |size_bytes| Element {
            kind: 1,
            size_bytes,
            layout: Layout::Packed,
        };
        let bytes = |element: Element, count| {
            let checked = element.times(std::ptr::null_mut(), count);
            checked.map(|checked| checked.bytes)
        };
        assert_eq!(bytes(element(0), 1 << 32), Ok(0));
        assert_eq!(bytes(element(0), -1), Err(Stop::Left));
        assert_eq!(bytes(element(1), 1 << 32), Err(Stop::Left));
    }
}
