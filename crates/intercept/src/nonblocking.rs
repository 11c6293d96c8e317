// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives that do not wait (MPI_Ibarrier and its relatives): what each of them gives and
//! takes. Called by entries; calls communicators, and pending, which goes on with them. Source: MPI
//! 4.1, 6.12.
//!
//! As everywhere, whether a call is served depends only on what is equal on all ranks.

use std::ffi::{c_int, c_void};

use weft_collectives::{Combination, Fault, Nonblocking};
use weft_memory::{BytesView, BytesViewMut};
use weft_mpi_abi::Abi;

use crate::buffers::{Bytes, Checked, Data};
use crate::calls::Call;
use crate::communicators::serve_nonblocking;
use crate::functions::Handle;
use crate::limits::within_nonblocking;
use crate::mpi::Mpi;
use crate::outcome::Stop;
use crate::pending::{Buffers, Opening};
use crate::reduction::terms;
use crate::result_buffer::ResultBuffer;
use crate::served::Served;
use crate::shares::given;

/// Where the program wants its request, of the width that its MPI has.
pub type Request = *mut c_void;

/// Begins a call, if `check` finds that it can be served; `None` leaves it to the MPI, here and
/// below. Only then is there a request: most programs' calls are longer than what is served.
///
/// # Safety
/// The arguments are a call's of the program, whose buffers stay as they are until the program has
/// heard of the call's end, here and below.
unsafe fn begin<B>(
    call: Call,
    communicator: usize,
    request: Request,
    check: impl FnOnce(&Mpi, &Served) -> Result<Opening<B>, Stop>,
) -> Option<c_int>
where
    B: FnOnce(&mut Nonblocking) -> Result<(), Fault>,
{
    serve_nonblocking(call, communicator, |mpi, served| {
        if request.is_null() {
            return Err(Stop::Left);
        }
        let pending = served.pending.as_ref().ok_or(Stop::Left)?;
        let made = pending.begin(mpi, check(mpi, served)?)?;
        // SAFETY: the program's place for a handle of its MPI.
        unsafe { write_request(mpi, request, made) };
        Ok(())
    })
}

/// # Safety
/// The place is one for a handle of this MPI.
unsafe fn write_request(mpi: &Mpi, place: Request, request: Handle) {
    // SAFETY: the caller's promise.
    unsafe {
        match mpi.abi {
            Abi::Mpich => place.cast::<u32>().write_unaligned(request as u32),
            Abi::OpenMpi | Abi::Standard => place.cast::<Handle>().write_unaligned(request),
        }
    }
}

/// Bytes that are given, until the call ends.
///
/// # Safety
/// What was promised of the program's buffer; a copy must be kept as long.
unsafe fn call_view(bytes: &Bytes) -> BytesView<'static> {
    // SAFETY: the caller's promise; a copy lies on the heap, wherever its owner is moved.
    unsafe {
        let view = bytes.view();
        BytesView::from_raw(view.base(), view.length_bytes())
    }
}

/// Room for a result, until the call ends.
///
/// # Safety
/// As [`call_view`].
unsafe fn call_view_mut(bytes: &mut Bytes) -> BytesViewMut<'static> {
    // SAFETY: as above.
    unsafe {
        let mut view = bytes.view_mut();
        let (base, length_bytes) = (view.base(), view.length_bytes());
        BytesViewMut::from_raw(base, length_bytes)
    }
}

/// Room for a result; it may hold what is given.
///
/// # Safety
/// As [`Checked::room`].
unsafe fn room(mpi: &Mpi, data: &Checked, is_in_place: bool) -> Result<Bytes, Stop> {
    // SAFETY: the caller's promise.
    unsafe {
        match is_in_place {
            true => data.read(mpi),
            false => Ok(data.room()),
        }
    }
}

/// Where a result goes, with room for it; it may hold what is given.
///
/// # Safety
/// As [`Checked::room`].
unsafe fn result(
    mpi: &Mpi,
    data: Checked,
    is_in_place: bool,
) -> Result<(ResultBuffer, Bytes), Stop> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { room(mpi, &data, is_in_place)? };
    Ok((ResultBuffer::new(data, mpi)?, bytes))
}

/// MPI_Ibarrier.
///
/// # Safety
/// As [`begin`].
pub unsafe fn barrier(communicator: usize, request: Request) -> Option<c_int> {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        begin(Call::Barrier, communicator, request, |_, _| {
            Ok(Opening {
                buffers: Buffers::NONE,
                begin: Nonblocking::barrier,
            })
        })
    }
}

/// MPI_Ibcast.
///
/// # Safety
/// As [`begin`].
pub unsafe fn broadcast(
    communicator: usize,
    data: Data,
    root: c_int,
    request: Request,
) -> Option<c_int> {
    let act = |mpi: &Mpi, served: &Served| {
        let root = served.root(root)?;
        let data = data.checked(mpi)?;
        within_nonblocking(mpi, Call::Bcast, data.bytes)?;
        let is_root = served.team.rank() == root;
        // SAFETY: the program's promise about its buffers, here and below; the root's bytes are not
        // written.
        unsafe {
            let mut bytes = room(mpi, &data, is_root)?;
            let place = (!is_root)
                .then(|| ResultBuffer::new(data, mpi))
                .transpose()?;
            let view = call_view_mut(&mut bytes);
            let buffers = match place {
                None => Buffers {
                    given: Some(bytes),
                    taken: None,
                },
                Some(place) => Buffers {
                    given: None,
                    taken: Some((place, bytes)),
                },
            };
            let begin = move |calls: &mut Nonblocking| calls.bcast(view, root);
            Ok(Opening { buffers, begin })
        }
    };
    // SAFETY: as above.
    unsafe { begin(Call::Bcast, communicator, request, act) }
}

/// MPI_Igather, and MPI_Iallgather without a root: `receive` describes one block.
///
/// # Safety
/// As [`begin`].
pub unsafe fn gather(
    communicator: usize,
    send: Data,
    receive: Data,
    root: Option<c_int>,
    request: Request,
) -> Option<c_int> {
    let call = match root {
        Some(_) => Call::Gather,
        None => Call::Allgather,
    };
    let act = |mpi: &Mpi, served: &Served| {
        let root = root.map(|root| served.root(root)).transpose()?;
        let takes = root.is_none_or(|root| root == served.team.rank());
        let is_in_place = takes && mpi.is_in_place(send.address());
        let block = if takes { receive } else { send };
        let block_bytes = block.checked(mpi)?.bytes;
        within_nonblocking(mpi, call, block_bytes)?;
        // SAFETY: as above.
        unsafe {
            let given = given(mpi, send, is_in_place)?;
            let view = given.as_ref().map(|given| call_view(given));
            let mut taken = match takes {
                true => {
                    let all = receive.times(served.team.ranks())?.checked(mpi)?;
                    Some(result(mpi, all, is_in_place)?)
                }
                false => None,
            };
            let recv = match &mut taken {
                Some((_, bytes)) => call_view_mut(bytes),
                None => BytesViewMut::from_slice(&mut []),
            };
            let begin = move |calls: &mut Nonblocking| calls.gather(view, recv, block_bytes, root);
            let buffers = Buffers { given, taken };
            Ok(Opening { buffers, begin })
        }
    };
    // SAFETY: as above.
    unsafe { begin(call, communicator, request, act) }
}

/// MPI_Iscatter: `send` describes one block.
///
/// # Safety
/// As [`begin`].
pub unsafe fn scatter(
    communicator: usize,
    send: Data,
    receive: Data,
    root: c_int,
    request: Request,
) -> Option<c_int> {
    let act = |mpi: &Mpi, served: &Served| {
        let root = served.root(root)?;
        let is_root = served.team.rank() == root;
        let keeps = is_root && mpi.is_in_place(receive.address());
        let block = if is_root { send } else { receive };
        let block_bytes = block.checked(mpi)?.bytes;
        within_nonblocking(mpi, Call::Scatter, block_bytes)?;
        // SAFETY: as above.
        unsafe {
            let given = match is_root {
                true => send.times(served.team.ranks())?.checked(mpi)?.read(mpi)?,
                false => Bytes::NONE,
            };
            let mut taken = match keeps {
                true => None,
                false => Some(result(mpi, receive.checked(mpi)?, false)?),
            };
            let recv = taken.as_mut().map(|(_, bytes)| call_view_mut(bytes));
            let view = call_view(&given);
            let begin = move |calls: &mut Nonblocking| calls.scatter(view, recv, block_bytes, root);
            let buffers = Buffers {
                given: Some(given),
                taken,
            };
            Ok(Opening { buffers, begin })
        }
    };
    // SAFETY: as above.
    unsafe { begin(Call::Scatter, communicator, request, act) }
}

/// MPI_Ialltoall: both describe one block.
///
/// # Safety
/// As [`begin`].
pub unsafe fn all_to_all(
    communicator: usize,
    send: Data,
    receive: Data,
    request: Request,
) -> Option<c_int> {
    let act = |mpi: &Mpi, served: &Served| {
        let ranks = served.team.ranks();
        let block_bytes = receive.checked(mpi)?.bytes;
        within_nonblocking(mpi, Call::Alltoall, block_bytes)?;
        let all = receive.times(ranks)?.checked(mpi)?;
        let is_in_place = mpi.is_in_place(send.address());
        // SAFETY: as above.
        unsafe {
            let given = match is_in_place {
                true => None,
                false => given(mpi, send.times(ranks)?, false)?,
            };
            let view = given.as_ref().map(|given| call_view(given));
            let (place, mut bytes) = result(mpi, all, is_in_place)?;
            let recv = call_view_mut(&mut bytes);
            let begin = move |calls: &mut Nonblocking| calls.alltoall(view, recv, block_bytes);
            let buffers = Buffers {
                given,
                taken: Some((place, bytes)),
            };
            Ok(Opening { buffers, begin })
        }
    };
    // SAFETY: as above.
    unsafe { begin(Call::Alltoall, communicator, request, act) }
}

/// Which reduction a call is.
#[derive(Clone, Copy, Debug)]
pub enum Sum {
    /// MPI_Ireduce, to a root as the program passed it.
    To(c_int),
    /// MPI_Iallreduce.
    All,
    /// MPI_Iscan.
    UpTo,
    /// MPI_Iexscan.
    Below,
    /// MPI_Ireduce_scatter_block.
    Scattered,
}

impl Sum {
    const fn call(self) -> Call {
        match self {
            Self::To(_) => Call::Reduce,
            Self::All => Call::Allreduce,
            Self::UpTo => Call::Scan,
            Self::Below => Call::Exscan,
            Self::Scattered => Call::ReduceScatter,
        }
    }
}

/// What a reduction does.
#[derive(Clone, Copy, Debug)]
pub struct Reducing {
    /// Which data go where.
    pub sum: Sum,
    /// The operation, as the program passed it.
    pub operation: Handle,
}

/// The reductions: `data` is where the result goes.
///
/// # Safety
/// As [`begin`].
pub unsafe fn reduce(
    reducing: Reducing,
    communicator: usize,
    send: *const c_void,
    data: Data,
    request: Request,
) -> Option<c_int> {
    let Reducing { sum, operation } = reducing;
    let act = |mpi: &Mpi, served: &Served| {
        let root = match sum {
            Sum::To(root) => Some(served.root(root)?),
            _ => None,
        };
        let rank = served.team.rank();
        // The first rank of exscan gets no result.
        let is_above_none = matches!(sum, Sum::Below) && rank == 0 && !mpi.is_in_place(send);
        let takes = root.is_none_or(|root| root == rank) && !is_above_none;
        let is_in_place = takes && mpi.is_in_place(send);
        // Only the address of a result counts.
        let place = if takes { data.address() } else { send };
        let (checked, reduction) = terms(mpi, data.at(place), operation)?;
        within_nonblocking(mpi, sum.call(), checked.bytes)?;
        if checked.bytes > 0 && (send.is_null() || (takes && send == data.address())) {
            return Err(Stop::Left);
        }
        let times = match sum {
            Sum::Scattered => served.team.ranks(),
            _ => 1,
        };
        // SAFETY: as above.
        let (given, taken) = unsafe {
            let given = (!is_in_place).then(|| checked.times_at(times, send)?.read(mpi));
            let of_result = if is_in_place { times } else { 1 };
            let take = || result(mpi, checked.times_at(of_result, place)?, is_in_place);
            (given.transpose()?, takes.then(take).transpose()?)
        };
        let mut buffers = Buffers { given, taken };
        // SAFETY: as above.
        let (view, recv) = unsafe {
            let recv = match &mut buffers.taken {
                Some((_, bytes)) => call_view_mut(bytes),
                None => BytesViewMut::from_slice(&mut []),
            };
            (buffers.given.as_ref().map(|given| call_view(given)), recv)
        };
        let begin = move |calls: &mut Nonblocking| match (sum, root) {
            (Sum::Scattered, _) => calls.reduce_scatter(view, recv, checked.bytes, reduction),
            (Sum::UpTo, _) => calls.combine(view, recv, reduction, Combination::UpTo),
            (Sum::Below, _) => calls.combine(view, recv, reduction, Combination::Below),
            (_, Some(root)) => calls.combine(view, recv, reduction, Combination::Root(root)),
            (_, None) => calls.combine(view, recv, reduction, Combination::All),
        };
        Ok(Opening { buffers, begin })
    };
    // SAFETY: as above.
    unsafe { begin(sum.call(), communicator, request, act) }
}
