// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives in which ranks give a block to each rank. Called by entries; calls communicators.
//! Source: MPI 4.1, 6.6 and 6.8.

use std::ffi::{c_int, c_void};

use weft_collectives::{Blocks, Lengths, Terms, Uneven};

use crate::buffers::{Bytes, Checked, Data};
use crate::calls::Call;
use crate::communicators::serve;
use crate::limits::{
    are_parts_shown, are_read_in_place, longest_block_bytes, unless_parts_are_left, unless_refused,
    within, within_or_agreed,
};
use crate::mpi::Mpi;
use crate::outcome::Outcome;
use crate::parts::{Described, Parts};
use crate::served::Served;
use crate::shares::{check_other, given, given_in_place, or_refuse};

/// MPI_Scatter: `send` describes one block; `None` leaves it to the MPI, here and below.
///
/// # Safety
/// The arguments are a call's of the program, here and below.
pub unsafe fn from_root(
    communicator: usize,
    send: Data,
    receive: Data,
    root: c_int,
) -> Option<c_int> {
    serve(Call::Scatter, communicator, |mpi, served| {
        let root = served.root(root)?;
        let is_root = served.team.rank() == root;
        let is_in_place = is_root && mpi.is_in_place(receive.address());
        let block = if is_root { send } else { receive };
        let block_bytes = block.checked(mpi)?.bytes;
        if block_bytes == 0 {
            return if is_root {
                check_other(mpi, receive)
            } else {
                Ok(())
            };
        }
        let all = match is_root {
            true => Some(send.times(served.team.ranks())?.checked(mpi)?),
            false => None,
        };
        let taken = match is_in_place {
            true => None,
            false => Some(receive.checked(mpi)?),
        };
        if are_read_in_place(Call::Scatter, block_bytes, served) {
            // SAFETY: the caller's promise.
            let outcome = unsafe { from_root_in_place(mpi, served, all, taken, root) };
            if let Some(outcome) = unless_refused(Call::Scatter, block_bytes, served, outcome) {
                return outcome;
            }
        }
        within_or_agreed(mpi, Call::Scatter, root, block_bytes, served)?;
        // SAFETY: the program's promise about its buffers, as far as its rank uses them.
        unsafe {
            let given = match &all {
                Some(all) => all.read(mpi)?,
                None => Bytes::NONE,
            };
            let mut room = taken.map(|taken| taken.room());
            let recv = room.as_mut().map(|room| room.view_mut());
            let (waiting, blocks) = (&mut served.waiting, Blocks::Even(block_bytes));
            let team = &mut served.team;
            team.scatter(waiting, given.view(), recv, blocks, root)?;
            match (taken, room) {
                (Some(taken), Some(room)) => taken.written(mpi, &room),
                _ => Ok(()),
            }
        }
    })
}

/// [`from_root`] with long blocks: `all` the root gives, one is `taken`.
///
/// # Safety
/// As [`from_root`].
unsafe fn from_root_in_place(
    mpi: &Mpi,
    served: &mut Served,
    all: Option<Checked>,
    taken: Option<Checked>,
    root: usize,
) -> Outcome {
    let ranks = served.team.ranks();
    let of_root = all.map(|all| all.bytes / ranks);
    let block_bytes = of_root.or(taken.map(|taken| taken.bytes)).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe {
        let given = match &all {
            Some(all) if all.is_plain() => all.read(mpi)?,
            // Not to be read in place, so refused.
            _ => Bytes::NONE,
        };
        let mut room = taken.map(|taken| taken.room());
        let recv = room.as_mut().map(|room| room.view_mut());
        let (mut direct, waiting) = served.direct()?;
        direct.scatter(waiting, given.view(), recv, block_bytes, root)?;
        match (taken, room) {
            (Some(taken), Some(room)) => taken.written(mpi, &room),
            _ => Ok(()),
        }
    }
}

/// MPI_Scatterv.
///
/// # Safety
/// As [`from_root`].
pub unsafe fn parts_from_root(
    communicator: usize,
    send: Described,
    receive: Data,
    root: c_int,
) -> Option<c_int> {
    serve(Call::Scatter, communicator, |mpi, served| {
        unless_parts_are_left(mpi, Call::Scatter, served)?;
        let root = served.root(root)?;
        let is_root = served.team.rank() == root;
        let is_in_place = is_root && mpi.is_in_place(receive.address());
        let describe = || {
            let taken = match is_in_place {
                true => None,
                false => Some(receive.checked(mpi)?),
            };
            let own_bytes = taken.map_or(0, |taken| taken.bytes);
            within(mpi, Call::Scatter, own_bytes, served)?;
            if !is_root {
                return Ok((Vec::new(), Bytes::NONE, taken));
            }
            // SAFETY: the program's promise about its buffers and lists, as far as its rank uses
            // them.
            unsafe {
                let all = send.checked(mpi, served.team.ranks())?;
                within(mpi, Call::Scatter, all.longest_bytes(), served)?;
                let given = all.read(mpi)?;
                Ok((all.blocks, given, taken))
            }
        };
        let described = describe();
        let (blocks, given, taken) = or_refuse(described, served, Uneven::Scatter { root })?;
        // SAFETY: as above.
        unsafe {
            let mut room = taken.map(|taken| taken.room());
            let recv = room.as_mut().map(|room| room.view_mut());
            let (waiting, blocks) = (&mut served.waiting, Blocks::Uneven(&blocks));
            let team = &mut served.team;
            team.scatter(waiting, given.view(), recv, blocks, root)?;
            match (taken, room) {
                (Some(taken), Some(room)) => taken.written(mpi, &room),
                _ => Ok(()),
            }
        }
    })
}

/// MPI_Alltoall: both describe one block.
///
/// # Safety
/// As [`from_root`].
#[inline]
pub unsafe fn all_to_all(communicator: usize, send: Data, receive: Data) -> Option<c_int> {
    serve(Call::Alltoall, communicator, |mpi, served| {
        let ranks = served.team.ranks();
        let block_bytes = receive.checked(mpi)?.bytes;
        if block_bytes == 0 {
            return check_other(mpi, send);
        }
        let all = receive.times(ranks)?.checked(mpi)?;
        let is_in_place = mpi.is_in_place(send.address());
        if are_read_in_place(Call::Alltoall, block_bytes, served) {
            // SAFETY: the caller's promise.
            let outcome = unsafe { all_to_all_in_place(mpi, served, send, all) };
            if let Some(outcome) = unless_refused(Call::Alltoall, block_bytes, served, outcome) {
                return outcome;
            }
        }
        within_or_agreed(mpi, Call::Alltoall, 0, block_bytes, served)?;
        // SAFETY: the program's promise about its buffers.
        unsafe {
            let (given, mut room) = if is_in_place {
                (None, all.read(mpi)?)
            } else {
                (given(mpi, send.times(ranks)?, false)?, all.room())
            };
            let given = given.as_ref().map(|given| given.view());
            let blocks = Blocks::Even(block_bytes);
            let team = &mut served.team;
            team.alltoall(&mut served.waiting, given, room.view_mut(), blocks, blocks)?;
            all.written(mpi, &room)
        }
    })
}

/// [`all_to_all`] with long blocks.
///
/// # Safety
/// As [`all_to_all`]; `all` is room for the blocks of all ranks.
unsafe fn all_to_all_in_place(mpi: &Mpi, served: &mut Served, send: Data, all: Checked) -> Outcome {
    let ranks = served.team.ranks();
    // SAFETY: the caller's promise.
    unsafe {
        let given = match mpi.is_in_place(send.address()) {
            // What is given is overwritten.
            true => None,
            false => given_in_place(mpi, send.times(ranks)?, false)?,
        };
        let given = given.as_ref().map(|given| given.view());
        let mut room = all.room();
        let (mut direct, waiting) = served.direct()?;
        direct.alltoall(waiting, given, room.view_mut(), all.bytes / ranks)?;
        all.written(mpi, &room)
    }
}

/// MPI_Alltoallv and MPI_Alltoallw.
///
/// # Safety
/// As [`from_root`].
pub unsafe fn parts_to_parts(
    communicator: usize,
    send: Described,
    receive: Described,
) -> Option<c_int> {
    serve(Call::Alltoall, communicator, |mpi, served| {
        let ranks = served.team.ranks();
        let is_in_place = mpi.is_in_place(send.address.cast_const().cast::<c_void>());
        // SAFETY: the program's promise about its buffers and lists.
        let describe = || unsafe {
            let all = receive.checked(mpi, ranks)?;
            let from = match is_in_place {
                true => None,
                false => Some(send.checked(mpi, ranks)?),
            };
            let given_bytes = from.as_ref().map_or(0, Parts::longest_bytes);
            let longest_bytes = all.longest_bytes().max(given_bytes);
            // Unpacking takes a second copy: long blocks come sooner by the MPI's messages.
            let is_taken_well =
                all.is_plain() || within(mpi, Call::Alltoall, all.longest_bytes(), served).is_ok();
            let tries = are_parts_shown(longest_bytes, served)
                && is_taken_well
                && from.as_ref().is_some_and(Parts::can_be_shown);
            if !tries {
                within(mpi, Call::Alltoall, longest_bytes, served)?;
            }
            let (given, room) = match &from {
                Some(from) => (Some(from.read(mpi)?), all.room()),
                None => (None, all.read(mpi)?),
            };
            Ok((all, room, from.zip(given), tries))
        };
        let described = describe();
        let (all, mut room, from, tries) = or_refuse(described, served, Uneven::Alltoall)?;
        let lengths = Lengths {
            given: from.as_ref().map_or(&[], |(from, _)| &from.blocks),
            taken: &all.blocks,
        };
        let terms = Terms {
            tries,
            most_staged_bytes: longest_block_bytes(Call::Alltoall, mpi.abi, ranks),
        };
        // SAFETY: as above.
        unsafe {
            let given = from.as_ref().map(|(_, given)| given.view());
            let recv = room.view_mut();
            match served.direct() {
                Ok((mut direct, waiting)) => {
                    direct.alltoall_of_lengths(waiting, given, recv, lengths, terms)?;
                }
                Err(_) => {
                    let (given_blocks, taken) =
                        (Blocks::Uneven(lengths.given), Blocks::Uneven(lengths.taken));
                    let waiting = &mut served.waiting;
                    served
                        .team
                        .alltoall(waiting, given, recv, given_blocks, taken)?;
                }
            }
            all.written(mpi, &room)
        }
    })
}
