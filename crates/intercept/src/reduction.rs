// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives that combine elements. Called by entries; calls communicators. Source: MPI 4.1, 6.9
//! to 6.12.

use std::ffi::{c_int, c_void};

use weft_collectives::{Block, Blocks, Reduction, Reductions};
use weft_memory::{BytesView, BytesViewMut};

use crate::across::Across;
use crate::buffers::{Checked, Data, LONGEST_BYTES};
use crate::calls::Call;
use crate::communicators::{serve, serve_all};
use crate::gaps::Gaps;
use crate::limits::{are_read_in_place, note_try, within_hosts, within_or_agreed};
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::parts::List;
use crate::served::Served;

/// What is combined and how.
///
/// # Errors
/// [`Stop::Left`] if it is for the MPI to do, or to refuse.
#[inline]
pub fn terms(mpi: &Mpi, data: Data, operation: usize) -> Result<(Checked, Reduction), Stop> {
    let kind = mpi.handle(data.kind());
    let reduction = mpi.datatypes.reduction(kind, mpi.handle(operation));
    let (reduction, gaps) = reduction.ok_or(Stop::Left)?;
    let checked = data.checked(mpi)?;
    match gaps {
        None => Ok((checked, reduction)),
        Some(gaps) => Ok((checked.with_gaps(gaps)?, reduction)),
    }
}

/// A rank's two buffers in a call.
struct Pair {
    /// Where it gives from, or the MPI's MPI_IN_PLACE.
    send: *const c_void,
    /// How much.
    send_bytes: usize,
    /// Where the result goes.
    receive: *const c_void,
    /// How much of it there is, in place also of what is given.
    receive_bytes: usize,
    /// Those of the elements in both.
    gaps: Option<Gaps>,
}

impl Pair {
    /// Has `act` combine what is given, `None` if that is in place, into the result.
    ///
    /// # Errors
    /// Those of `act`; the result of a call with gaps is then not written.
    ///
    /// # Safety
    /// The program's promise about its buffers, whose type is a predefined one.
    #[inline]
    unsafe fn lend(
        &self,
        is_in_place: bool,
        act: impl FnOnce(Option<BytesView<'_>>, BytesViewMut<'_>) -> Outcome,
    ) -> Outcome {
        let Some(gaps) = self.gaps else {
            // SAFETY: the caller's promise.
            let (send, recv) = unsafe { self.views(is_in_place) };
            return act(send, recv);
        };
        // SAFETY: the caller's promise.
        unsafe {
            let send = (!is_in_place).then(|| gaps.read(self.send.cast(), self.send_bytes));
            let mut result = match is_in_place {
                true => gaps.read(self.receive.cast(), self.receive_bytes),
                false => vec![0; self.receive_bytes],
            };
            let send = send.as_deref().map(BytesView::from_slice);
            act(send, BytesViewMut::from_slice(&mut result))?;
            gaps.write(&result, self.receive.cast_mut().cast());
        }
        Ok(())
    }

    /// As views; nothing to send if the data are in place.
    ///
    /// # Safety
    /// As [`Self::lend`]; there are no gaps, so that the bytes lie side by side.
    #[inline]
    unsafe fn views<'a>(&self, is_in_place: bool) -> (Option<BytesView<'a>>, BytesViewMut<'a>) {
        // SAFETY: the caller's promise.
        unsafe {
            let send = || BytesView::from_raw(self.send.cast(), self.send_bytes);
            let receive = self.receive.cast_mut().cast();
            (
                (!is_in_place).then(send),
                BytesViewMut::from_raw(receive, self.receive_bytes),
            )
        }
    }

    /// # Errors
    /// [`Stop::Left`] for buffers that the MPI refuses.
    #[inline]
    fn check(&self) -> Outcome {
        if self.send.is_null() || (self.receive_bytes > 0 && self.send == self.receive) {
            return Err(Stop::Left);
        }
        Ok(())
    }
}

/// MPI_Allreduce, MPI_Scan and MPI_Exscan, as `call` says: the result has as many elements as each
/// rank gives, and goes to `data`. `None` leaves it to the MPI, here and below.
///
/// # Safety
/// The arguments are a call's of the program, here and below.
#[inline]
pub unsafe fn whole(
    call: Call,
    communicator: usize,
    send: *const c_void,
    data: Data,
    operation: usize,
) -> Option<c_int> {
    let across = |mpi: &Mpi, across: &mut Across| {
        let (checked, reduction) = terms(mpi, data, operation)?;
        if call != Call::Allreduce {
            return Err(Stop::Left);
        }
        if checked.bytes == 0 {
            return Ok(());
        }
        within_hosts(mpi, call, checked.bytes)?;
        let buffers = Pair {
            send,
            send_bytes: checked.bytes,
            receive: data.address(),
            receive_bytes: checked.bytes,
            gaps: checked.gaps(),
        };
        buffers.check()?;
        // SAFETY: the program's promise about both buffers, and a predefined type.
        unsafe {
            buffers.lend(mpi.is_in_place(send), |send, recv| {
                across.allreduce(mpi, send, recv, reduction)
            })
        }
    };
    let here = |mpi: &'static Mpi, served: &mut Served| {
        // Where nothing is below it, a rank's result is none: its address says nothing.
        let takes = call != Call::Exscan || served.team.rank() > 0 || mpi.is_in_place(send);
        let place = if takes { data.address() } else { send };
        let (checked, reduction) = terms(mpi, data.at(place), operation)?;
        if checked.bytes == 0 {
            return Ok(());
        }
        let buffers = Pair {
            send,
            send_bytes: checked.bytes,
            receive: place,
            receive_bytes: if takes { checked.bytes } else { 0 },
            gaps: checked.gaps(),
        };
        buffers.check()?;
        let act = |send: Option<BytesView<'_>>, recv: BytesViewMut<'_>| {
            if call == Call::Allreduce && are_read_in_place(call, checked.bytes, served) {
                let (mut direct, waiting) = served.direct()?;
                direct.allreduce(waiting, send, recv, reduction)?;
                let is_refused = !direct.has_read_in_place();
                note_try(call, checked.bytes, served, is_refused);
                return Ok(());
            }
            within_or_agreed(mpi, call, 0, checked.bytes, served)?;
            let (team, waiting) = (&mut served.team, &mut served.waiting);
            match call {
                Call::Scan => team.scan(waiting, send, recv, reduction)?,
                Call::Exscan => team.exscan(waiting, send, recv, reduction)?,
                _ => team.allreduce(waiting, send, recv, reduction)?,
            }
            Ok(())
        };
        // SAFETY: the program's promise about both buffers, and a predefined type.
        unsafe { buffers.lend(mpi.is_in_place(send), act) }
    };
    serve_all(call, communicator, here, across)
}

/// MPI_Reduce: `data` is where the result goes, at the root.
///
/// # Safety
/// As [`whole`].
#[inline]
pub unsafe fn to_root(
    communicator: usize,
    send: *const c_void,
    data: Data,
    operation: usize,
    root: c_int,
) -> Option<c_int> {
    serve(Call::Reduce, communicator, |mpi, served| {
        let root = served.root(root)?;
        let is_root = served.team.rank() == root;
        let is_in_place = is_root && mpi.is_in_place(send);
        // Only the root's address counts.
        let place = if is_root { data.address() } else { send };
        let (checked, reduction) = terms(mpi, data.at(place), operation)?;
        if checked.bytes == 0 {
            return Ok(());
        }
        let is_read_in_place = are_read_in_place(Call::Reduce, checked.bytes, served);
        if !is_read_in_place {
            within_or_agreed(mpi, Call::Reduce, root, checked.bytes, served)?;
        }
        if send.is_null() || (is_root && send == data.address()) {
            return Err(Stop::Left);
        }
        let buffers = Pair {
            send,
            send_bytes: checked.bytes,
            receive: place,
            receive_bytes: if is_root { checked.bytes } else { 0 },
            gaps: checked.gaps(),
        };
        let act = |send: Option<BytesView<'_>>, recv: BytesViewMut<'_>| {
            if is_read_in_place {
                let (mut direct, waiting) = served.direct()?;
                direct.reduce(waiting, send, recv, reduction, root)?;
                let is_refused = !direct.has_read_in_place();
                note_try(Call::Reduce, checked.bytes, served, is_refused);
                return Ok(());
            }
            let team = &mut served.team;
            Ok(team.reduce(&mut served.waiting, send, recv, reduction, root)?)
        };
        // SAFETY: the program's promise about its buffers, as far as its rank uses them, and a
        // predefined type.
        unsafe { buffers.lend(is_in_place, act) }
    })
}

/// MPI_Reduce_scatter_block: `data` is one block, where the result goes.
///
/// # Safety
/// As [`whole`].
pub unsafe fn block_to_each(
    communicator: usize,
    send: *const c_void,
    data: Data,
    operation: usize,
) -> Option<c_int> {
    serve(Call::ReduceScatter, communicator, |mpi, served| {
        let (checked, reduction) = terms(mpi, data, operation)?;
        within_or_agreed(mpi, Call::ReduceScatter, 0, checked.bytes, served)?;
        let total_bytes = checked.bytes * served.team.ranks();
        // SAFETY: the caller's promise.
        unsafe {
            let own_bytes = checked.bytes;
            let buffers = Pair {
                send,
                send_bytes: total_bytes,
                receive: data.address(),
                receive_bytes: own_bytes,
                gaps: checked.gaps(),
            };
            scatter(mpi, served, buffers, Blocks::Even(own_bytes), reduction)
        }
    })
}

/// MPI_Reduce_scatter: `data` has no count.
///
/// # Safety
/// As [`whole`].
pub unsafe fn part_to_each(
    communicator: usize,
    send: *const c_void,
    data: Data,
    counts: List,
    operation: usize,
) -> Option<c_int> {
    serve(Call::ReduceScatter, communicator, |mpi, served| {
        let (none, reduction) = terms(mpi, data, operation)?;
        let size_bytes = reduction.size_bytes();
        debug_assert_eq!(none.bytes, 0);
        let mut blocks = Vec::with_capacity(served.team.ranks());
        let mut total_bytes = 0;
        for rank in 0..served.team.ranks() {
            // SAFETY: the program's promise about its list.
            let count = unsafe { counts.get(rank) };
            let count = usize::try_from(count).map_err(|_| Stop::Left)?;
            let length_bytes = count.checked_mul(size_bytes).ok_or(Stop::Left)?;
            blocks.push(Block {
                offset_bytes: total_bytes,
                length_bytes,
            });
            total_bytes = length_bytes
                .checked_add(total_bytes)
                .filter(|&total_bytes| total_bytes <= LONGEST_BYTES)
                .ok_or(Stop::Left)?;
        }
        let own_bytes = blocks[served.team.rank()].length_bytes;
        // SAFETY: the caller's promise.
        unsafe {
            let buffers = Pair {
                send,
                send_bytes: total_bytes,
                receive: data.address(),
                receive_bytes: own_bytes,
                gaps: none.gaps(),
            };
            scatter(mpi, served, buffers, Blocks::Uneven(&blocks), reduction)
        }
    })
}

/// # Safety
/// As [`Pair::lend`].
unsafe fn scatter(
    mpi: &Mpi,
    served: &mut Served,
    mut buffers: Pair,
    blocks: Blocks<'_>,
    reduction: Reduction,
) -> Outcome {
    if buffers.send_bytes == 0 {
        return Ok(());
    }
    let is_in_place = mpi.is_in_place(buffers.send);
    if is_in_place {
        // What is given lies where the result goes.
        buffers.receive_bytes = buffers.send_bytes;
    }
    // A rank that gets nothing may have nowhere to put it.
    if buffers.receive_bytes > 0 {
        buffers.check()?;
    }
    let act = |send: Option<BytesView<'_>>, recv: BytesViewMut<'_>| {
        let team = &mut served.team;
        Ok(team.reduce_scatter(&mut served.waiting, send, recv, blocks, reduction)?)
    };
    // SAFETY: the caller's promise.
    unsafe { buffers.lend(is_in_place, act) }
}
