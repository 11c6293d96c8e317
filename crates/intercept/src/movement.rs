// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives that bring bytes to ranks as they are, all from one rank or one block from each
//! rank. Called by entries; calls communicators. Source: MPI 4.1, 6.3 to 6.7.

use std::ffi::c_int;

use weft_collectives::{Blocks, Uneven};

use crate::across::Across;
use crate::buffers::{Bytes, Checked, Data};
use crate::calls::Call;
use crate::communicators::{serve, serve_all};
use crate::limits::{
    are_read_in_place, unless_parts_are_left, unless_refused, within, within_hosts,
    within_or_agreed,
};
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::parts::{Described, Parts};
use crate::served::Served;
use crate::shares::{check_other, given, given_in_place, or_refuse};

/// MPI_Barrier; `None` leaves it to the MPI, here and below.
///
/// # Safety
/// The arguments are a call's of the program, here and below.
#[inline]
pub unsafe fn barrier(communicator: usize) -> Option<c_int> {
    let here = |_: &'static Mpi, served: &mut Served| {
        served.team.barrier(&mut served.waiting)?;
        served.waiting.progress();
        Ok(())
    };
    serve_all(Call::Barrier, communicator, here, |mpi, across| {
        across.barrier(mpi)
    })
}

/// MPI_Bcast.
///
/// # Safety
/// As [`barrier`].
#[inline]
pub unsafe fn broadcast(communicator: usize, data: Data, root: c_int) -> Option<c_int> {
    let across = |mpi: &Mpi, across: &mut Across| {
        let data = data.checked(mpi)?;
        if data.bytes == 0 {
            return Ok(());
        }
        within_hosts(mpi, Call::Bcast, data.bytes)?;
        // SAFETY: the program's promise about the data.
        unsafe { across.broadcast(mpi, data, root) }
    };
    let here = |mpi: &'static Mpi, served: &mut Served| {
        let root = served.root(root)?;
        let data = data.checked(mpi)?;
        if data.bytes == 0 {
            return Ok(());
        }
        if are_read_in_place(Call::Bcast, data.bytes, served) {
            // SAFETY: the caller's promise.
            let outcome = unsafe { broadcast_in_place(mpi, served, data, root) };
            if let Some(outcome) = unless_refused(Call::Bcast, data.bytes, served, outcome) {
                return outcome;
            }
        }
        within_or_agreed(mpi, Call::Bcast, root, data.bytes, served)?;
        let is_root = served.team.rank() == root;
        // SAFETY: the program's promise about the data.
        let mut bytes = unsafe {
            if is_root {
                data.read(mpi)?
            } else {
                data.room()
            }
        };
        // SAFETY: as above; the root's bytes are not written.
        let view = unsafe { bytes.view_mut() };
        served.team.bcast(&mut served.waiting, view, root)?;
        if is_root {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { data.written(mpi, &bytes) }
    };
    serve_all(Call::Bcast, communicator, here, across)
}

/// [`broadcast`] of long data.
///
/// # Safety
/// As [`broadcast`].
unsafe fn broadcast_in_place(
    mpi: &Mpi,
    served: &mut Served,
    data: Checked,
    root: usize,
) -> Outcome {
    let is_root = served.team.rank() == root;
    // SAFETY: the caller's promise; the root's bytes are not written.
    unsafe {
        let mut bytes = match is_root && !data.is_plain() {
            // Not to be read in place, so refused.
            true => Bytes::NONE,
            false => data.room(),
        };
        let (mut direct, waiting) = served.direct()?;
        direct.bcast(waiting, bytes.view_mut(), data.bytes, root)?;
        match is_root {
            true => Ok(()),
            false => data.written(mpi, &bytes),
        }
    }
}

/// MPI_Allgather: `receive` describes one block.
///
/// # Safety
/// As [`barrier`].
#[inline]
pub unsafe fn to_all(communicator: usize, send: Data, receive: Data) -> Option<c_int> {
    serve(Call::Allgather, communicator, |mpi, served| {
        let block_bytes = receive.checked(mpi)?.bytes;
        if block_bytes == 0 {
            return check_other(mpi, send);
        }
        let all = receive.times(served.team.ranks())?.checked(mpi)?;
        if are_read_in_place(Call::Allgather, block_bytes, served) {
            // SAFETY: the caller's promise.
            let outcome = unsafe { to_all_in_place(mpi, served, send, all) };
            if let Some(outcome) = unless_refused(Call::Allgather, block_bytes, served, outcome) {
                return outcome;
            }
        }
        within_or_agreed(mpi, Call::Allgather, 0, block_bytes, served)?;
        let is_in_place = mpi.is_in_place(send.address());
        // SAFETY: the program's promise about its buffers.
        unsafe {
            let given = given(mpi, send, is_in_place)?;
            let mut room = if is_in_place {
                all.read(mpi)?
            } else {
                all.room()
            };
            let given = given.as_ref().map(|given| given.view());
            let blocks = Blocks::Even(block_bytes);
            let team = &mut served.team;
            team.allgather(&mut served.waiting, given, room.view_mut(), blocks)?;
            all.written(mpi, &room)
        }
    })
}

/// [`to_all`] with long blocks.
///
/// # Safety
/// As [`to_all`]; `all` is room for the blocks of all ranks.
unsafe fn to_all_in_place(mpi: &Mpi, served: &mut Served, send: Data, all: Checked) -> Outcome {
    let block_bytes = all.bytes / served.team.ranks();
    // SAFETY: the caller's promise.
    unsafe {
        let given = given_in_place(mpi, send, all.is_plain())?;
        let given = given.as_ref().map(|given| given.view());
        let mut room = all.room();
        let (mut direct, waiting) = served.direct()?;
        direct.allgather(waiting, given, room.view_mut(), Blocks::Even(block_bytes))?;
        all.written(mpi, &room)
    }
}

/// MPI_Allgatherv. All ranks know all lengths; whether the blocks are read in place depends on the
/// shortest of them, since each must be shared.
///
/// # Safety
/// As [`barrier`].
pub unsafe fn parts_to_all(communicator: usize, send: Data, receive: Described) -> Option<c_int> {
    serve(Call::Allgather, communicator, |mpi, served| {
        let is_in_place = mpi.is_in_place(send.address());
        // SAFETY: the program's promise about its buffers and lists.
        unsafe {
            let all = receive.checked(mpi, served.team.ranks())?;
            let shortest_bytes = all.shortest_bytes();
            if are_read_in_place(Call::Allgather, shortest_bytes, served) {
                let read_in_place = |served: &mut Served| {
                    let given = given_in_place(mpi, send, all.is_plain())?;
                    let given = given.as_ref().map(|given| given.view());
                    let mut room = all.room();
                    let (mut direct, waiting) = served.direct()?;
                    let blocks = Blocks::Uneven(&all.blocks);
                    direct.allgather(waiting, given, room.view_mut(), blocks)?;
                    all.written(mpi, &room)
                };
                let outcome = read_in_place(served);
                if let Some(outcome) =
                    unless_refused(Call::Allgather, shortest_bytes, served, outcome)
                {
                    return outcome;
                }
            }
            within(mpi, Call::Allgather, all.longest_bytes(), served)?;
            let given = given(mpi, send, is_in_place)?;
            let mut room = if is_in_place {
                all.read(mpi)?
            } else {
                all.room()
            };
            let given = given.as_ref().map(|given| given.view());
            let blocks = Blocks::Uneven(&all.blocks);
            let team = &mut served.team;
            team.allgather(&mut served.waiting, given, room.view_mut(), blocks)?;
            all.written(mpi, &room)
        }
    })
}

/// MPI_Gather: `receive` describes one block.
///
/// # Safety
/// As [`barrier`].
pub unsafe fn to_root(
    communicator: usize,
    send: Data,
    receive: Data,
    root: c_int,
) -> Option<c_int> {
    serve(Call::Gather, communicator, |mpi, served| {
        let root = served.root(root)?;
        let is_root = served.team.rank() == root;
        let is_in_place = is_root && mpi.is_in_place(send.address());
        let block = if is_root { receive } else { send };
        let block_bytes = block.checked(mpi)?.bytes;
        if block_bytes == 0 {
            return if is_root {
                check_other(mpi, send)
            } else {
                Ok(())
            };
        }
        let all = match is_root {
            true => Some(receive.times(served.team.ranks())?.checked(mpi)?),
            false => None,
        };
        if are_read_in_place(Call::Gather, block_bytes, served) {
            // SAFETY: the caller's promise.
            let outcome = unsafe { to_root_in_place(mpi, served, send, all, root) };
            if let Some(outcome) = unless_refused(Call::Gather, block_bytes, served, outcome) {
                return outcome;
            }
        }
        within_or_agreed(mpi, Call::Gather, root, block_bytes, served)?;
        // SAFETY: the program's promise about its buffers, as far as its rank uses them.
        unsafe {
            let given = given(mpi, send, is_in_place)?;
            let mut room = match &all {
                Some(all) if is_in_place => all.read(mpi)?,
                Some(all) => all.room(),
                None => Bytes::NONE,
            };
            let given = given.as_ref().map(|given| given.view());
            let blocks = Blocks::Even(block_bytes);
            let team = &mut served.team;
            team.gather(&mut served.waiting, given, room.view_mut(), blocks, root)?;
            all.map_or(Ok(()), |all| all.written(mpi, &room))
        }
    })
}

/// [`to_root`] with long blocks.
///
/// # Safety
/// As [`to_root`]; `all` is the root's room for the blocks of all ranks.
unsafe fn to_root_in_place(
    mpi: &Mpi,
    served: &mut Served,
    send: Data,
    all: Option<Checked>,
    root: usize,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        let block_bytes = match &all {
            Some(all) => all.bytes / served.team.ranks(),
            None => send.checked(mpi)?.bytes,
        };
        // The root's own block may be packed: nobody else reads it.
        let is_in_place = all.is_some() && mpi.is_in_place(send.address());
        let given = match all {
            Some(_) => given(mpi, send, is_in_place)?,
            None => given_in_place(mpi, send, false)?,
        };
        let given = given.as_ref().map(|given| given.view());
        let mut room = match &all {
            Some(all) if is_in_place => all.read(mpi)?,
            Some(all) => all.room(),
            None => Bytes::NONE,
        };
        let (mut direct, waiting) = served.direct()?;
        direct.gather(waiting, given, room.view_mut(), block_bytes, root)?;
        all.map_or(Ok(()), |all| all.written(mpi, &room))
    }
}

/// MPI_Gatherv.
///
/// # Safety
/// As [`barrier`].
pub unsafe fn parts_to_root(
    communicator: usize,
    send: Data,
    receive: Described,
    root: c_int,
) -> Option<c_int> {
    serve(Call::Gather, communicator, |mpi, served| {
        unless_parts_are_left(mpi, Call::Gather, served)?;
        let root = served.root(root)?;
        let is_root = served.team.rank() == root;
        let is_in_place = is_root && mpi.is_in_place(send.address());
        let ranks = served.team.ranks();
        // SAFETY: the program's promise about its buffers and lists, as far as its rank uses them.
        let described = unsafe {
            let all = match is_root {
                true => receive.checked(mpi, ranks).map(Some),
                false => Ok(None),
            };
            all.and_then(|all| {
                let given = given(mpi, send, is_in_place)?;
                let own_bytes = given.as_ref().map_or(0, Bytes::length_bytes);
                let longest_bytes = all.as_ref().map_or(own_bytes, Parts::longest_bytes);
                within(mpi, Call::Gather, longest_bytes, served)?;
                let room = match &all {
                    Some(all) if is_in_place => all.read(mpi)?,
                    Some(all) => all.room(),
                    None => Bytes::NONE,
                };
                Ok((all, given, room))
            })
        };
        let (all, given, mut room) = or_refuse(described, served, Uneven::Gather { root })?;
        // SAFETY: as above.
        unsafe {
            let given = given.as_ref().map(|given| given.view());
            let blocks = Blocks::Uneven(all.as_ref().map_or(&[], |all| &all.blocks));
            let team = &mut served.team;
            team.gather(&mut served.waiting, given, room.view_mut(), blocks, root)?;
            all.map_or(Ok::<_, Stop>(()), |all| all.written(mpi, &room))
        }
    })
}
