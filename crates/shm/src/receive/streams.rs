// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All messages that come in pieces. At most one streams through a lane at a time. Of those with
//! early data the rest comes in DATA cells through the lane and its chunks, so that two processes
//! that answer each other go to and fro in the same memory; or as any described message does, where
//! that has lately been faster.

use std::time::Instant;

use slab::Slab;
use weft_contract::{Landing, Owner, RemoteId};
use weft_memory::{BytesView, UserBuffer};
use weft_os::crash_point;

use crate::contact::contacts::Contacts;
use crate::contact::lane::Piece;
use crate::copy::fetch::Fetch;
use crate::copy::laps::{LANE_LAP_BYTES, Laps};
use crate::copy::offer::RemoteOffer;
use crate::protocol::cell::{Control, Cts, Transfer};
use crate::protocol::copy_method::CopyMethod;
use crate::receive::offers::{Offer, Offers};
use crate::receive::receipts::Due;
use crate::receive::request::{Request, Taken};
use crate::receive::stream::{Beginning, Decision, Stream, StreamEnd, Target};
use crate::tuner::copies::Lesson;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: Slab<Stream>,
    /// By remote, what came as DATA.
    laps: Vec<Laps>,
}

/// A message whose rest is wanted, and of which it is not decided how it comes.
#[derive(Debug)]
pub(crate) struct Undecided {
    pub(crate) offer: RemoteOffer,
    pub(crate) buffer: UserBuffer,
    pub(crate) wanted_bytes: usize,
}

/// What becomes of the lane of a remote that is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LostLane {
    /// It stays: pieces that still come through it are dropped.
    Stays,
    /// Nothing comes through it any more.
    Ends,
}

/// What a message that has come further asks for.
#[derive(Debug)]
pub(crate) enum Step {
    Nothing,
    /// The rest is to be fetched.
    Fetch(Fetch),
    /// It is over.
    End(StreamEnd),
    /// It is over, and took this time.
    Landed(StreamEnd, Timed),
}

/// How long it took to come as DATA.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) remote: RemoteId,
    pub(crate) bytes: usize,
    pub(crate) started: Instant,
    pub(crate) lesson: Lesson,
}

/// Pieces.
impl Streams {
    pub(crate) fn count(&self) -> usize {
        self.streams.len()
    }

    /// Who sends them.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = RemoteId> {
        self.streams.iter().map(|(_, stream)| stream.remote)
    }

    /// The first piece. A matched receive gets it at once.
    pub(super) fn begin<O: Owner>(
        &mut self,
        offers: &mut Offers,
        piece: &mut Piece<'_>,
        beginning: Beginning,
        owner: &mut O,
    ) -> Taken {
        let unasked_bytes = beginning.unasked_bytes;
        let fits = |payload: &BytesView<'_>| (1..=unasked_bytes).contains(&payload.length_bytes());
        if !piece.payload.as_ref().is_some_and(fits) {
            return Taken::CORRUPT;
        }
        let entry = self.streams.vacant_entry();
        let index = entry.key();
        let remote = piece.remote;
        let envelope = beginning.header.envelope(remote, beginning.length_bytes);
        let target = match offers.announce(&envelope, Offer::Stream(index), owner) {
            Some(landing) => Target::Landing(landing),
            None => Target::Heap(Vec::with_capacity(unasked_bytes)),
        };
        let stream = Stream::new(remote, beginning, target);
        let goes_on = stream.rest.is_some();
        entry.insert(stream);
        *piece.stream = Some(index);
        crash_point!(25, "stream: begun at the receiver");
        let mut taken = self.take_piece(piece, owner);
        if goes_on && matches!(taken.request, Request::None) {
            taken.request = Request::GoOn(index);
        }
        taken
    }

    /// A further piece.
    pub(super) fn take_piece<O: Owner>(&mut self, piece: &mut Piece<'_>, owner: &mut O) -> Taken {
        let (Some(index), Some(payload)) = (*piece.stream, piece.payload) else {
            return Taken::CORRUPT;
        };
        let Some(stream) = self.streams.get_mut(index) else {
            return Taken::CORRUPT;
        };
        if !stream.take(payload, stream.unasked_bytes) {
            return Taken::CORRUPT;
        }
        let bytes = payload.length_bytes() as u32;
        let taken = |request| Taken { bytes, request };
        if !stream.has_begun() {
            crash_point!(26, "stream: a piece is taken, others are to come");
            return taken(Request::None);
        }
        *piece.stream = None;
        crash_point!(27, "stream: the last piece is taken");
        if stream.rest.is_some() {
            return taken(Request::GoOn(index));
        }
        let end = self.end_if_over(index);
        if let Some(token) = end.landed {
            owner.on_landed(token, Ok(()));
        }
        let request = |due: Due| Request::Finish(due.send_id);
        taken(end.finish.map_or(Request::None, request))
    }

    /// DATA came in, for the message of this number.
    pub(super) fn take_data(&mut self, piece: &Piece<'_>, number: u64) -> Taken {
        let index = number as usize;
        let (Some(stream), Some(payload)) = (self.streams.get_mut(index), piece.payload) else {
            return Taken::CORRUPT;
        };
        let bytes = payload.length_bytes();
        if stream.remote != piece.remote
            || !stream.expects_data(bytes)
            || !stream.take(payload, stream.expected_bytes)
        {
            return Taken::CORRUPT;
        }
        crash_point!(53, "data: one is taken");
        Taken {
            bytes: bytes as u32,
            request: if stream.is_complete() {
                Request::GoOn(index)
            } else {
                Request::None
            },
        }
    }
}

/// Receives.
impl Streams {
    /// The owner has a receive for it: what is on the heap goes there, and the rest will.
    pub(crate) fn land(&mut self, index: usize, landing: Landing) -> StreamEnd {
        let stream = &mut self.streams[index];
        if let Target::Heap(bytes) = &stream.target {
            landing.buffer.fill(0, BytesView::from_slice(bytes));
        }
        stream.target = Target::Landing(landing);
        self.end_if_over(index)
    }

    /// The owner does not want it.
    pub(crate) fn discard(&mut self, index: usize) -> StreamEnd {
        self.streams[index].target = Target::Nowhere;
        match self.go_on(index) {
            Step::End(end) => end,
            _ => self.end_if_over(index),
        }
    }

    fn end_if_over(&mut self, index: usize) -> StreamEnd {
        if self.streams.get(index).is_some_and(Stream::is_over) {
            self.streams.remove(index).into_end()
        } else {
            StreamEnd::default()
        }
    }

    /// Whether something of a remote was taken that still needs an answer.
    pub(super) fn owe_answers(&self, remote: RemoteId) -> bool {
        let mut streams = self.streams.iter();
        streams.any(|(_, stream)| stream.remote == remote && stream.needs_answer())
    }

    /// Takes out a stream of a remote that is whole and has no receive: what it brought.
    pub(super) fn take_whole(&mut self, index: usize, remote: RemoteId) -> Option<Vec<u8>> {
        let stream = self.streams.get_mut(index)?;
        let bytes = stream.bring(remote)?;
        self.streams.remove(index);
        Some(bytes)
    }

    /// Whether a stream is of this remote.
    pub(super) fn is_of(&self, index: usize, remote: RemoteId) -> bool {
        let stream = self.streams.get(index);
        stream.is_some_and(|stream| stream.remote == remote)
    }

    /// Ends what comes from a remote; answers the receives that it was to fill.
    pub(super) fn lose(&mut self, remote: RemoteId, lane: LostLane) -> Vec<Landing> {
        let streams = self.streams.iter();
        let its = streams.filter(|(_, stream)| stream.remote == remote);
        let indices: Vec<usize> = its.map(|(index, _)| index).collect();
        let end = |index: usize| {
            let target = match lane {
                LostLane::Stays => {
                    std::mem::replace(&mut self.streams[index].target, Target::Nowhere)
                }
                LostLane::Ends => self.streams.remove(index).target,
            };
            match target {
                Target::Landing(landing) => Some(landing),
                _ => None,
            }
        };
        indices.into_iter().filter_map(end).collect()
    }
}

/// The rest of messages with early data.
impl Streams {
    /// What is to be decided before the message can go on, if something is.
    pub(crate) fn undecided(&self, index: usize) -> Option<Undecided> {
        let stream = self.streams.get(index)?;
        let (Some(rest), Target::Landing(landing)) = (&stream.rest, &stream.target) else {
            return None;
        };
        let wanted_bytes = rest.offer.wanted_bytes(landing.buffer.length_bytes());
        (rest.decision.is_none() && wanted_bytes > stream.unasked_bytes).then(|| Undecided {
            offer: rest.offer,
            buffer: landing.buffer.clone(),
            wanted_bytes,
        })
    }

    /// It is decided how the rest comes; asks for it if it is to come as DATA.
    pub(crate) fn decide(
        &mut self,
        contacts: &mut Contacts,
        index: usize,
        method: CopyMethod,
        lesson: Lesson,
    ) {
        let stream = &mut self.streams[index];
        let (Some(rest), Target::Landing(landing)) = (&mut stream.rest, &stream.target) else {
            return;
        };
        let offer = rest.offer;
        let is_reached = contacts.remote(offer.remote).attached().is_some();
        // A pipe is lent as soon as its sender can be told, and the fetch fails if that cannot be.
        let by_lane = method == CopyMethod::Pipelined && is_reached;
        rest.decision = Some(Decision {
            method: match method {
                CopyMethod::Pipelined if !is_reached => CopyMethod::PipelinedNonTemporal,
                method => method,
            },
            lesson,
            started: Instant::now(),
        });
        if !by_lane {
            return;
        }
        if let Some(lane) = contacts.lane_of(offer.remote) {
            lane.begun().expect_data();
        }
        stream.expected_bytes = offer.wanted_bytes(landing.buffer.length_bytes());
        let cts = Cts {
            send_id: offer.send_id,
            bytes: stream.unasked_bytes as u64..stream.expected_bytes as u64,
            by: Transfer::Lane {
                number: index as u64,
            },
        };
        crash_point!(54, "early data: the rest is to be asked for");
        contacts.answer(offer.remote, Control::Cts(cts));
    }

    /// A message with early data has come further, or its receive is known, or that it is not
    /// wanted.
    pub(crate) fn go_on(&mut self, index: usize) -> Step {
        let Some(stream) = self.streams.get(index) else {
            return Step::Nothing;
        };
        let Some(rest) = &stream.rest else {
            return Step::Nothing;
        };
        let (offer, decision, has_begun) = (rest.offer, rest.decision, stream.has_begun());
        match (&stream.target, decision) {
            (Target::Heap(_), _) => Step::Nothing,
            (Target::Nowhere, _) | (Target::Landing(_), None) => {
                // Nothing is wanted beyond what comes unasked.
                if has_begun {
                    Step::End(self.streams.remove(index).end_with(Some(offer.send_id)))
                } else {
                    Step::Nothing
                }
            }
            (Target::Landing(_), Some(decision)) if decision.method == CopyMethod::Pipelined => {
                if !stream.is_complete() {
                    return Step::Nothing;
                }
                let stream = self.streams.remove(index);
                let timed = Timed {
                    remote: stream.remote,
                    bytes: stream.expected_bytes,
                    started: decision.started,
                    lesson: decision.lesson,
                };
                let receipt = offer.wants_receipt.then_some(offer.send_id);
                Step::Landed(stream.end_with(receipt), timed)
            }
            (Target::Landing(_), Some(decision)) => {
                if !has_begun {
                    return Step::Nothing;
                }
                let stream = self.streams.remove(index);
                let Target::Landing(landing) = stream.target else {
                    return Step::Nothing;
                };
                let fetch = Fetch::new(offer, landing, stream.unasked_bytes);
                Step::Fetch(fetch.by(decision.method, decision.lesson))
            }
        }
    }

    /// So many bytes came from a remote as DATA; true if the first lap was over before.
    pub(crate) fn note_lap(&mut self, remote: RemoteId, bytes: usize) -> bool {
        self.laps(remote).note(bytes, LANE_LAP_BYTES)
    }

    /// The pages of the lane of this remote were made before they are needed.
    pub(crate) fn skip_first_lap(&mut self, remote: RemoteId) {
        self.laps(remote).skip_first();
    }

    fn laps(&mut self, remote: RemoteId) -> &mut Laps {
        let index = remote.index();
        if self.laps.len() <= index {
            self.laps.resize(index + 1, Laps::default());
        }
        &mut self.laps[index]
    }
}
