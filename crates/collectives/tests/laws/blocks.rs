// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls with a block for each rank (gather, scatter, alltoall and the like), each with what every
//! rank must find in its buffer afterwards. Made and run by random.rs.

use fastrand::Rng;
use weft_collectives::{Block, Blocks, Element, Fault, Operation, Reduction, Team, Wait};
use weft_memory::{BytesView, BytesViewMut};

/// What a buffer holds where nothing may be written.
const UNTOUCHED: u8 = 0xA5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Gather { root: usize },
    Allgather,
    Scatter { root: usize },
    Alltoall,
    ReduceScatter,
}

/// One call, with all ranks' buffers.
#[derive(Debug)]
pub struct BlockCase {
    kind: Kind,
    uneven: bool,
    in_place: bool,
    ranks: Vec<RankBuffers>,
}

/// One rank's part of the call.
#[derive(Clone, Default)]
struct RankBuffers {
    send: Vec<u8>,
    sent: Vec<Block>,
    recv: Vec<u8>,
    received: Vec<Block>,
    expected: Vec<u8>,
}

impl std::fmt::Debug for RankBuffers {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths = |blocks: &[Block]| -> Vec<usize> {
            blocks.iter().map(|block| block.length_bytes).collect()
        };
        write!(
            to,
            "{:?} to {:?}",
            lengths(&self.sent),
            lengths(&self.received)
        )
    }
}

/// Blocks of these lengths, one after the other; with gaps between them if they are uneven.
fn place(lengths: &[usize], uneven: bool) -> (Vec<Block>, usize) {
    let mut end = 0;
    let block = |&length_bytes: &usize| {
        let offset_bytes = end;
        end += length_bytes + if uneven { 3 } else { 0 };
        Block {
            offset_bytes,
            length_bytes,
        }
    };
    (lengths.iter().map(block).collect(), end)
}

fn put(buffer: &mut [u8], block: Block, bytes: &[u8]) {
    buffer[block.offset_bytes..][..block.length_bytes].copy_from_slice(bytes);
}

fn bytes(rng: &mut Rng, length_bytes: usize) -> Vec<u8> {
    (0..length_bytes).map(|_| rng.u8(..)).collect()
}

impl BlockCase {
    /// A random call of `count` ranks with blocks of up to `longest_bytes`.
    pub fn new(rng: &mut Rng, count: usize, longest_bytes: usize) -> Self {
        let kind = match rng.u8(..5) {
            0 => Kind::Gather {
                root: rng.usize(..count),
            },
            1 => Kind::Allgather,
            2 => Kind::Scatter {
                root: rng.usize(..count),
            },
            3 => Kind::Alltoall,
            _ => Kind::ReduceScatter,
        };
        let uneven = rng.bool();
        // In place, ranks give as much as they take.
        let in_place = rng.bool();
        let mut case = Self {
            kind,
            uneven,
            in_place,
            ranks: vec![RankBuffers::default(); count],
        };
        let mut length = |_| match uneven {
            true => rng.usize(..=longest_bytes) * rng.usize(..2),
            false => longest_bytes,
        };
        match kind {
            Kind::Alltoall => {
                let mut table: Vec<Vec<usize>> = Vec::new();
                for rank in 0..count {
                    let mut row: Vec<usize> = (0..count).map(&mut length).collect();
                    if in_place {
                        (0..rank).for_each(|other| row[other] = table[other][rank]);
                    }
                    table.push(row);
                }
                case.alltoall(rng, &table);
            }
            _ => {
                let lengths: Vec<usize> = (0..count).map(length).collect();
                match kind {
                    Kind::Gather { .. } | Kind::Allgather => case.gather(rng, &lengths),
                    Kind::Scatter { root } => case.scatter(rng, &lengths, root),
                    _ => case.reduce_scatter(rng, &lengths),
                }
            }
        }
        case
    }

    fn alltoall(&mut self, rng: &mut Rng, table: &[Vec<usize>]) {
        let count = self.ranks.len();
        for (rank, row) in table.iter().enumerate() {
            let column: Vec<usize> = table.iter().map(|row| row[rank]).collect();
            let own = &mut self.ranks[rank];
            let (sent, sent_bytes) = place(row, self.uneven);
            let (received, received_bytes) = place(&column, self.uneven);
            own.send = bytes(rng, sent_bytes);
            own.recv = vec![UNTOUCHED; received_bytes];
            if self.in_place {
                own.recv.clone_from(&own.send);
            }
            (own.sent, own.received) = (sent, received);
        }
        for rank in 0..count {
            let mut expected = self.ranks[rank].recv.clone();
            for (giver, other) in self.ranks.iter().enumerate() {
                let from = other.sent[rank];
                let data = &other.send[from.offset_bytes..][..from.length_bytes];
                put(&mut expected, self.ranks[rank].received[giver], data);
            }
            self.ranks[rank].expected = expected;
        }
    }

    fn gather(&mut self, rng: &mut Rng, lengths: &[usize]) {
        let (received, end) = place(lengths, self.uneven);
        let mut all = vec![UNTOUCHED; end];
        for (rank, own) in self.ranks.iter_mut().enumerate() {
            own.send = bytes(rng, lengths[rank]);
            own.received.clone_from(&received);
            own.recv = vec![UNTOUCHED; end];
            put(&mut all, received[rank], &own.send);
        }
        for (rank, own) in self.ranks.iter_mut().enumerate() {
            let gets = match self.kind {
                Kind::Gather { root } => root == rank,
                _ => true,
            };
            if self.in_place && gets {
                put(&mut own.recv, received[rank], &own.send);
            }
            own.expected = if gets { all.clone() } else { own.recv.clone() };
        }
    }

    fn scatter(&mut self, rng: &mut Rng, lengths: &[usize], root: usize) {
        let (sent, end) = place(lengths, self.uneven);
        let all = bytes(rng, end);
        for (rank, own) in self.ranks.iter_mut().enumerate() {
            let block = sent[rank];
            own.recv = vec![UNTOUCHED; block.length_bytes];
            own.expected = all[block.offset_bytes..][..block.length_bytes].to_vec();
            if rank == root {
                own.send.clone_from(&all);
                own.sent.clone_from(&sent);
                if self.in_place {
                    own.expected.clone_from(&own.recv);
                }
            }
        }
    }

    fn reduce_scatter(&mut self, rng: &mut Rng, lengths: &[usize]) {
        // Blocks of a reduction have no gaps, and whole elements.
        let lengths: Vec<usize> = lengths.iter().map(|length| length / 4 * 4).collect();
        let (blocks, end) = place(&lengths, false);
        let mut sum: Vec<u32> = vec![0; end / 4];
        for own in &mut self.ranks {
            own.send = bytes(rng, end);
            for (sum, bytes) in sum.iter_mut().zip(own.send.chunks_exact(4)) {
                let word = u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
                *sum = sum.wrapping_add(word);
            }
        }
        let sum: Vec<u8> = sum.into_iter().flat_map(u32::to_ne_bytes).collect();
        for (rank, own) in self.ranks.iter_mut().enumerate() {
            let block = blocks[rank];
            let length_bytes = block.length_bytes;
            own.sent.clone_from(&blocks);
            own.recv = vec![UNTOUCHED; length_bytes];
            if self.in_place {
                own.recv.clone_from(&own.send);
            }
            // In place, what lies behind the result is not specified.
            own.expected = sum[block.offset_bytes..][..length_bytes].to_vec();
        }
    }

    /// Makes the call as one of its ranks, and checks what came of it.
    pub fn make(&self, team: &mut Team, wait: &mut dyn Wait) {
        let own = &self.ranks[team.rank()];
        let mut buffer = own.recv.clone();
        self.call(team, wait, own, &mut buffer)
            .unwrap_or_else(|fault| panic!("{fault}: {self:?}"));
        let compared = match self.kind {
            Kind::ReduceScatter => &buffer[..own.expected.len()],
            _ => &buffer[..],
        };
        assert!(compared == own.expected, "rank {}: {self:?}", team.rank());
    }

    /// Makes the call with a segment that may hold anything: what comes of it does not matter, as
    /// long as nothing beside the buffer changes.
    pub fn attempt(&self, team: &mut Team, wait: &mut dyn Wait) -> Result<(), Fault> {
        const BESIDE: usize = 64;
        let own = &self.ranks[team.rank()];
        let mut room = vec![UNTOUCHED; own.recv.len() + 2 * BESIDE];
        let inner = BESIDE..BESIDE + own.recv.len();
        room[inner.clone()].copy_from_slice(&own.recv);
        let end = self.call(team, wait, own, &mut room[inner.clone()]);
        room[inner].fill(UNTOUCHED);
        assert!(room.iter().all(|byte| *byte == UNTOUCHED), "{self:?}");
        end
    }

    fn call(
        &self,
        team: &mut Team,
        wait: &mut dyn Wait,
        own: &RankBuffers,
        buffer: &mut [u8],
    ) -> Result<(), Fault> {
        let even = |blocks: &[Block]| blocks.first().map_or(0, |block| block.length_bytes);
        let blocks_of = |blocks| match self.uneven {
            true => Blocks::Uneven(blocks),
            false => Blocks::Even(even(blocks)),
        };
        let recv = BytesViewMut::from_slice(buffer);
        let whole = BytesView::from_slice(&own.send);
        let send = (!self.in_place).then_some(whole);
        let (given, taken) = (blocks_of(&own.sent), blocks_of(&own.received));
        match self.kind {
            Kind::Gather { root } => {
                let send = if team.rank() == root {
                    send
                } else {
                    Some(whole)
                };
                team.gather(wait, send, recv, taken, root)
            }
            Kind::Allgather => team.allgather(wait, send, recv, taken),
            Kind::Scatter { root } => {
                let keeps = self.in_place && team.rank() == root;
                let length_bytes = self.ranks[0].recv.len();
                let given = if self.uneven {
                    given
                } else {
                    Blocks::Even(length_bytes)
                };
                team.scatter(wait, whole, (!keeps).then_some(recv), given, root)
            }
            Kind::Alltoall => team.alltoall(wait, send, recv, given, taken),
            Kind::ReduceScatter => {
                let sum = Reduction::new(Element::U32, Operation::Sum).expect("known");
                team.reduce_scatter(wait, send, recv, given, sum)
            }
        }
    }
}
