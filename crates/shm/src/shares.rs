// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that both of their processes copy at once (docs/shm-layout.md, clause 7a): the receiver
//! reads shares out of the sender's memory from the front, the sender writes shares into the
//! receiver's memory from the back, by process_vm_readv(2) and process_vm_writev(2), until they
//! meet. A sender that does not look, or may not, leaves all of it to the receiver.
//!
//! Called by rendezvous (the receiver's part) and by receive's work (the sender's); calls ring's
//! board. Nobody's memory is written once its owner has been told that the receive is over: what is
//! free is taken back first, and a share that is being written is waited for.

use std::ops::Range;
use std::os::fd::AsFd;

use weft_contract::{RemoteId, TransferError};
use weft_memory::{UserBuffer, single_copy};
use weft_os::{clock, crash_point, sleep};
use weft_ring::{Board, PipeReader, SHARE_LIMIT, Share};

use crate::choice::Method;
use crate::direct::LEAVE_LIMIT_NS;
use crate::fetch::{ESRCH, PULL_BYTES, Stage};
use crate::protocol::cell::{Control, Cts, Transfer};
use crate::remote::Link;
use crate::transport::Transport;

/// Boards lent to one remote at a time. Chosen: its sender goes on with the next message while the
/// last share of one is copied.
const BOARDS_PER_REMOTE: u32 = 2;

/// Shares are multiples of this. Measured (docs/lab/2026-11-22-cooperative-copy.md): shorter system
/// calls cost more than they share out.
const SHARE_STEP_BYTES: usize = 64 * 1024;

/// Longest share of a message that is not too long for it. Measured as the above.
const LONG_SHARE_BYTES: usize = 256 * 1024;

/// Shares that a message is cut into if their lengths permit it. Chosen: who ends first waits for a
/// sixteenth of it on average.
const SHARES: usize = 8;

/// How a stretch of a message is shared out.
fn share_bytes(length_bytes: usize) -> usize {
    let even = |count: usize| {
        length_bytes
            .div_ceil(count)
            .next_multiple_of(SHARE_STEP_BYTES)
    };
    even(SHARES).min(LONG_SHARE_BYTES).max(even(SHARE_LIMIT))
}

/// A message that we receive so.
#[derive(Debug)]
pub(crate) struct Sharing {
    pipe: usize,
    reader: PipeReader,
    board: Board,
    /// What is shared out, and how long a share is.
    bytes: Range<usize>,
    share_bytes: usize,
    /// Shares before this one are copied.
    next: usize,
}

/// A message of ours that its receiver asked us to help with.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) send_id: usize,
    pub(crate) remote: RemoteId,
    payload: UserBuffer,
    board: Board,
    bytes: Range<usize>,
    share_bytes: usize,
    /// Where the message's first byte goes in the receiver's memory.
    target: u64,
    /// Shares from here on are not ours to take any more.
    left: usize,
}

#[cfg(test)]
impl Push {
    /// Shares that we took, or found taken.
    pub(crate) fn helped(&self) -> usize {
        self.board.count() - self.left
    }
}

/// Which bytes of the message a share is.
fn stretch_of(bytes: &Range<usize>, share_bytes: usize, index: usize) -> Range<usize> {
    let start = bytes.start + index * share_bytes;
    start..(start + share_bytes).min(bytes.end)
}

/// What the receiver has to do next.
enum Next {
    Copy(Range<usize>),
    Wait,
    End,
}

impl Sharing {
    /// The next share that nobody copies is ours.
    fn next(&mut self) -> Result<Next, TransferError> {
        let mut is_helped = false;
        for index in self.next..self.board.count() {
            if self.board.take(index) {
                return Ok(Next::Copy(stretch_of(&self.bytes, self.share_bytes, index)));
            }
            match self.board.share(index) {
                Share::Own | Share::Done if !is_helped => self.next = index + 1,
                Share::Own | Share::Done => {}
                Share::Free | Share::Helped => is_helped = true,
                Share::Other => return Err(TransferError::Corrupt),
            }
        }
        Ok(if is_helped { Next::Wait } else { Next::End })
    }
}

/// What we receive.
impl Transport {
    /// Lends a board to the sender of a fetch that is to be shared, if one is free.
    pub(crate) fn lend_board(&mut self, fetch_index: usize) -> bool {
        let fetch = &self.transfers.fetches[fetch_index];
        let remote = fetch.offer.remote;
        if self.remotes[remote.index()].pipes_lent >= BOARDS_PER_REMOTE {
            return false;
        }
        let own = self.own.region.mapping();
        let Some((pipe, reader)) = self.pipes.take_for_states(own, self.own.file.as_fd()) else {
            return false;
        };
        self.transfers.tickets += 1;
        let ticket = self.transfers.tickets;
        let bytes = fetch.done_bytes..fetch.wanted_bytes;
        let share_bytes = share_bytes(bytes.len());
        let count = bytes.len().div_ceil(share_bytes);
        let Some(board) = Board::attach(own, pipe, ticket, count) else {
            self.pipes.give_back(pipe, reader);
            return false;
        };
        board.open();
        let cts = Cts {
            send_id: fetch.offer.send_id,
            bytes: bytes.start as u64..bytes.end as u64,
            by: Transfer::Copy {
                pipe,
                ticket,
                address: fetch.landing.buffer.address() as u64,
            },
        };
        self.transfers.fetches[fetch_index].stage = Stage::Shared(Sharing {
            pipe,
            reader,
            board,
            bytes,
            share_bytes,
            next: 0,
        });
        self.remotes[remote.index()].pipes_lent += 1;
        crash_point!(56, "board: lent, its borrower not told");
        self.answer(remote, Control::Cts(cts));
        true
    }

    /// Copies shares that nobody copies; true if there were any. Where reading is refused, all of
    /// it comes through a pipe.
    pub(crate) fn pull_shares(&mut self, index: usize) -> Result<bool, TransferError> {
        let looks = self.housekeeping.patience();
        let (mut copied_bytes, mut left_looks) = (0, looks);
        while copied_bytes < PULL_BYTES {
            let fetch = &mut self.transfers.fetches[index];
            let Stage::Shared(sharing) = &mut fetch.stage else {
                return Ok(false);
            };
            let stretch = match sharing.next()? {
                Next::Copy(stretch) => stretch,
                Next::End => {
                    fetch.done_bytes = fetch.wanted_bytes;
                    return Ok(true);
                }
                Next::Wait if left_looks == 0 => break,
                Next::Wait => {
                    left_looks -= 1;
                    std::hint::spin_loop();
                    continue;
                }
            };
            if fetch.started_ns == 0 {
                fetch.started_ns = clock::monotonic_ns();
            }
            let remote = fetch.offer.remote;
            let buffer = fetch.landing.buffer.clone();
            let (Link::Ready(attached), Some(address)) =
                (&self.remotes[remote.index()].link, fetch.offer.address)
            else {
                return Err(TransferError::RemoteLost);
            };
            crash_point!(57, "board: a share is taken, not read");
            copied_bytes += stretch.len();
            let memory = attached.memory();
            match copy_all(stretch, |at, count| {
                single_copy::pull(&memory, address.wrapping_add(at as u64), &buffer, at, count)
            }) {
                // A test that kills either side needs both of them at work, on a busy machine, too.
                Copied::All if cfg!(crash_points) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Copied::All => {}
                Copied::Gone => return Err(TransferError::RemoteLost),
                Copied::Refused => {
                    self.leave_board(index);
                    return Ok(true);
                }
            }
        }
        Ok(copied_bytes > 0)
    }

    /// Reading the sender's memory is refused: the message comes through a pipe, once its sender
    /// writes no more of it.
    #[cold]
    fn leave_board(&mut self, index: usize) {
        let fetch = &mut self.transfers.fetches[index];
        let remote = fetch.offer.remote;
        fetch.done_bytes = fetch.begun_bytes;
        fetch.method = Method::Pipelined;
        let stage = std::mem::replace(&mut fetch.stage, Stage::AwaitPipe);
        self.abandon(stage, remote);
        if let Link::Ready(attached) = &mut self.remotes[remote.index()].link {
            attached.single_copy = Some(false);
        }
    }

    /// A fetch from this remote ends before all of it is here: what was lent for it is ours again,
    /// and the remote writes no more of it.
    pub(crate) fn abandon(&mut self, stage: Stage, remote: RemoteId) {
        let pipe = match stage {
            Stage::Piped(pipe, _) => pipe,
            Stage::Shared(sharing) => {
                self.await_helper(&sharing.board, remote);
                sharing.board.close();
                sharing.pipe
            }
            Stage::Follows => return self.remotes[remote.index()].pipes_lent -= 1,
            Stage::Undecided
            | Stage::SingleCopy
            | Stage::Mapped
            | Stage::Own
            | Stage::AwaitPipe => return,
        };
        self.pipes.recover(pipe, self.own.region.mapping());
        self.remotes[remote.index()].pipes_lent -= 1;
    }

    /// The whole message is here.
    pub(crate) fn close_board(&mut self, sharing: Sharing, remote: RemoteId) {
        sharing.board.close();
        self.pipes.give_back_states(sharing.pipe, sharing.reader);
        self.remotes[remote.index()].pipes_lent -= 1;
    }

    /// No sender writes into memory of ours any more, when this endpoint is closed.
    pub(crate) fn abandon_all(&mut self) {
        for fetch in std::mem::take(&mut self.transfers.fetches) {
            self.abandon(fetch.stage, fetch.offer.remote);
        }
    }

    /// Takes back what is free of a board, and waits for what the sender copies, unless it has
    /// died.
    fn await_helper(&self, board: &Board, remote: RemoteId) {
        let end_ns = clock::monotonic_ns() + LEAVE_LIMIT_NS;
        // Not by its address, where another process may be now.
        let mut lanes = self.inbound.iter().flatten();
        let helper = lanes.find(|lane| lane.remote == remote);
        while !board.revoke() {
            if helper.is_none_or(|lane| self.own.is_gone(&lane.claimant)) {
                return;
            }
            if clock::monotonic_ns() > end_ns {
                let address = self.remotes[remote.index()].address;
                (self.settings.report)(&format!(
                    "the process at {address} was stopped while it wrote a message into memory of this one, which gives the message up"
                ));
                return;
            }
            sleep::yield_now();
        }
    }
}

/// What we send.
impl Transport {
    /// A CTS asked us to copy these bytes of a message, too, and named the `board` (pipe and
    /// ticket) that tells who copies what. The request was checked against the send.
    pub(crate) fn start_push(&mut self, cts: &Cts, pipe: usize, ticket: u64, target: u64) {
        let send_id = cts.send_id as usize;
        let outgoing = &self.transfers.outgoing[send_id];
        let Link::Ready(attached) = &self.remotes[outgoing.remote.index()].link else {
            return;
        };
        let Some(payload) = outgoing.payload.clone() else {
            return;
        };
        let bytes = cts.bytes.start as usize..cts.bytes.end as usize;
        let share_bytes = share_bytes(bytes.len());
        let count = bytes.len().div_ceil(share_bytes);
        let Some(board) = Board::attach(attached.region.mapping(), pipe, ticket, count) else {
            return;
        };
        self.transfers.pushes.push(Push {
            send_id,
            remote: outgoing.remote,
            payload,
            board,
            bytes,
            share_bytes,
            target,
            left: count,
        });
    }

    /// Copies a share of the first message that we help with; answers whether there was one. Not
    /// while messages come to us, which this processor is to copy: to share then would only make
    /// two short system calls of a long one.
    pub(crate) fn push_shares(&mut self) -> usize {
        if !self.transfers.fetches.is_empty() {
            return 0;
        }
        let Some(push) = self.transfers.pushes.first() else {
            return 0;
        };
        if !self.may_single_copy(push.remote) || !self.push_share() {
            self.transfers.pushes.remove(0);
        }
        1
    }

    /// Copies the last share that nobody copies; false if there is none, or we may not.
    fn push_share(&mut self) -> bool {
        let Some(push) = self.transfers.pushes.first_mut() else {
            return false;
        };
        let Link::Ready(attached) = &self.remotes[push.remote.index()].link else {
            return false;
        };
        let Some(index) = (0..push.left).rev().find(|&index| push.board.help(index)) else {
            return false;
        };
        push.left = index;
        crash_point!(58, "board: a share is taken to help, not written");
        let stretch = stretch_of(&push.bytes, push.share_bytes, index);
        let (memory, target, payload) = (attached.memory(), push.target, &push.payload);
        let copied = copy_all(stretch, |at, count| {
            single_copy::push(&memory, target.wrapping_add(at as u64), payload, at, count)
        });
        if matches!(copied, Copied::All) {
            push.board.hand_over(index);
            return index > 0;
        }
        push.board.give_back(index);
        false
    }
}

enum Copied {
    All,
    /// There is no such process.
    Gone,
    Refused,
}

/// Calls until all of a stretch is copied.
fn copy_all(
    mut stretch: Range<usize>,
    mut copy: impl FnMut(usize, usize) -> std::io::Result<usize>,
) -> Copied {
    while !stretch.is_empty() {
        match copy(stretch.start, stretch.len()) {
            Ok(count) if count > 0 => stretch.start += count,
            Err(error) if error.raw_os_error() == Some(ESRCH) => return Copied::Gone,
            Ok(_) | Err(_) => return Copied::Refused,
        }
    }
    Copied::All
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_a_message_and_there_are_no_more_than_a_board_holds() {
        for length in [
            1,
            4096,
            65536,
            65537,
            98304,
            1 << 20,
            (4 << 20) + 1,
            1 << 30,
            1 << 40,
        ] {
            let (bytes, share) = (7..7 + length, share_bytes(length));
            let count = length.div_ceil(share);
            assert!(count <= SHARE_LIMIT, "{count} shares of {length}");
            let mut next = bytes.start;
            for index in 0..count {
                let stretch = stretch_of(&bytes, share, index);
                assert!(stretch.start == next && !stretch.is_empty());
                next = stretch.end;
            }
            assert_eq!(next, bytes.end);
        }
        assert_eq!(share_bytes(1 << 20), 128 * 1024);
        assert_eq!(share_bytes(4 << 20), 256 * 1024);
    }
}
