// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the hosts' first ranks, their leaders, say to each other: messages of the MPI, on a
//! communicator of their own. Made by agreement, called by across.
//!
//! A leader that waits in the MPI's own collectives spins, beside the ranks that it should make way
//! for where they share cores; so all but long broadcasts go by algorithms of this file. Sources:
//! Hensgen, Finkel and Manber 1988 (dissemination); Thakur, Rabenseifner and Gropp 2005 (binomial
//! tree, recursive doubling).

use std::ffi::c_int;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_collectives::Reduction;
use weft_memory::{BytesView, BytesViewMut};

use crate::functions::Handle;
use crate::mpi::Mpi;
use crate::outcome::{Outcome, Stop};
use crate::waiting::Waiting;

/// The longest broadcasts that go by a tree. Chosen: beyond, the MPI's own split the data among the
/// leaders, which sends fewer bytes.
const LONGEST_BYTES: usize = 32 * 1024;

/// The communicator is nobody else's, and messages between two ranks keep their order.
const TAG: c_int = 0;

/// Communicators that nobody needs any more.
static GONE: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

fn gone() -> MutexGuard<'static, Vec<Handle>> {
    GONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees the communicators that leaders have given back. Called in a call of the program's, not in
/// one of the MPI's.
pub fn free_gone(mpi: &Mpi) {
    // No longer locked while the MPI may wait for a thread that gives one back.
    let all = mem::take(&mut *gone());
    for mut communicator in all {
        // SAFETY: a communicator of ours.
        unsafe { (mpi.functions.free_communicator)(&mut communicator) };
    }
}

/// One leader's end of all leaders' communicator.
#[derive(Debug)]
pub struct Leaders {
    communicator: Handle,
    /// Which of the hosts.
    own: usize,
    hosts: usize,
    /// Room for another leader's data.
    room: Vec<u8>,
}

/// What goes to another leader and what comes from one, in one step.
struct Step<'a> {
    send: Option<(usize, BytesView<'a>)>,
    receive: Option<(usize, BytesViewMut<'a>)>,
}

impl Leaders {
    /// The leader of host `own` of `hosts`, which is also its rank in the communicator.
    pub fn new(communicator: Handle, own: usize, hosts: usize) -> Self {
        Self {
            communicator,
            own,
            hosts,
            room: Vec::new(),
        }
    }

    /// Gives the communicator back, as all leaders do: [`free_gone`] frees it. To free it
    /// here would be to call the MPI from inside: MPICH frees a communicator with operations under
    /// way as the last of them ends, in any call, and holds a lock that MPI_Comm_free takes, too.
    pub fn leave(self) {
        gone().push(self.communicator);
    }

    /// Sends and receives.
    ///
    /// # Errors
    /// [`Stop::Code`] and [`Stop::Fault`], here and below.
    fn step(&self, mpi: &Mpi, waiting: &mut Waiting, step: Step<'_>) -> Outcome {
        let Step { send, receive } = step;
        let byte = mpi.datatypes.byte;
        let mut requests = [0; 2];
        let mut count = 0;
        if let Some((from, mut room)) = receive {
            let bytes = room.length_bytes() as c_int;
            // SAFETY: room of that length, which is waited for below.
            let code = unsafe {
                let (base, request) = (room.base().cast(), &mut requests[count]);
                let receive = mpi.functions.receive;
                receive(
                    base,
                    bytes,
                    byte,
                    from as c_int,
                    TAG,
                    self.communicator,
                    request,
                )
            };
            succeeded(code)?;
            count += 1;
        }
        if let Some((to, data)) = send {
            let bytes = data.length_bytes() as c_int;
            // SAFETY: data of that length, which are waited for below.
            let code = unsafe {
                let (base, request) = (data.base().cast(), &mut requests[count]);
                (mpi.functions.send)(
                    base,
                    bytes,
                    byte,
                    to as c_int,
                    TAG,
                    self.communicator,
                    request,
                )
            };
            succeeded(code)?;
            count += 1;
        }
        waiting.until_complete(&mut requests[..count])
    }

    /// Returns once all leaders have called it.
    ///
    /// # Errors
    /// As above.
    pub fn barrier(&self, mpi: &Mpi, waiting: &mut Waiting) -> Outcome {
        let mut distance = 1;
        while distance < self.hosts {
            let step = Step {
                send: Some((
                    (self.own + distance) % self.hosts,
                    BytesView::from_slice(&[]),
                )),
                receive: Some((
                    (self.own + self.hosts - distance) % self.hosts,
                    BytesViewMut::from_slice(&mut []),
                )),
            };
            self.step(mpi, waiting, step)?;
            distance *= 2;
        }
        Ok(())
    }

    /// Brings the data of host `root` to all leaders.
    ///
    /// # Errors
    /// As above.
    pub fn broadcast(
        &self,
        mpi: &Mpi,
        waiting: &mut Waiting,
        mut data: BytesViewMut<'_>,
        root: usize,
    ) -> Outcome {
        let length_bytes = data.length_bytes();
        if length_bytes > LONGEST_BYTES {
            let (base, count) = (data.base().cast(), length_bytes as c_int);
            let broadcast = mpi.functions.broadcast;
            // SAFETY: data of that length on all leaders, who call now.
            return succeeded(unsafe {
                let byte = mpi.datatypes.byte;
                broadcast(base, count, byte, root as c_int, self.communicator)
            });
        }
        // Counted from the root on.
        let own = (self.own + self.hosts - root) % self.hosts;
        let host = |at: usize| (at + root) % self.hosts;
        // A leader hears from the one without its highest bit, and tells those with a higher one.
        let mut bit = 1;
        if own != 0 {
            bit = 1 << own.ilog2();
            let step = Step {
                send: None,
                receive: Some((host(own - bit), data.part(0, length_bytes))),
            };
            self.step(mpi, waiting, step)?;
            bit *= 2;
        }
        while own + bit < self.hosts {
            let step = Step {
                send: Some((host(own + bit), data.as_view())),
                receive: None,
            };
            self.step(mpi, waiting, step)?;
            bit *= 2;
        }
        Ok(())
    }

    /// Combines all leaders' data, in the order of hosts, for all of them.
    ///
    /// # Errors
    /// As above.
    pub fn allreduce(
        &mut self,
        mpi: &Mpi,
        waiting: &mut Waiting,
        data: &mut BytesViewMut<'_>,
        reduction: Reduction,
    ) -> Outcome {
        let length_bytes = data.length_bytes();
        let mut room = std::mem::take(&mut self.room);
        room.resize(length_bytes.max(room.len()), 0);
        let mut sum = Sum {
            data,
            room: &mut room[..length_bytes],
            reduction,
        };
        let outcome = self.doubling(mpi, waiting, &mut sum);
        if outcome.is_ok() {
            self.room = room;
        } else {
            // The MPI may still write what it was to receive.
            std::mem::forget(room);
        }
        outcome
    }

    /// Recursive doubling. Of hosts beyond a power of two each leaves its data to the one before
    /// it, which brings it the result.
    fn doubling(&self, mpi: &Mpi, waiting: &mut Waiting, sum: &mut Sum<'_, '_>) -> Outcome {
        let acting = 1 << self.hosts.ilog2();
        let pairs = self.hosts - acting;
        if self.own >= 2 * pairs {
            return self.among(mpi, waiting, sum, acting);
        }
        if self.own % 2 == 1 {
            let partner = self.own - 1;
            self.step(mpi, waiting, sum.to(partner))?;
            return self.step(mpi, waiting, sum.whole_from(partner));
        }
        let partner = self.own + 1;
        self.step(mpi, waiting, sum.from(partner))?;
        sum.add(self.own < partner);
        self.among(mpi, waiting, sum, acting)?;
        self.step(mpi, waiting, sum.to(partner))
    }

    /// The same among the hosts that are left, a power of two.
    fn among(
        &self,
        mpi: &Mpi,
        waiting: &mut Waiting,
        sum: &mut Sum<'_, '_>,
        acting: usize,
    ) -> Outcome {
        let pairs = self.hosts - acting;
        let own = self.own - (self.own / 2).min(pairs);
        let host = |at: usize| at + at.min(pairs);
        let mut bit = 1;
        while bit < acting {
            let other = host(own ^ bit);
            let step = Step {
                send: Some((other, sum.data.as_view())),
                receive: Some((other, BytesViewMut::from_slice(sum.room))),
            };
            self.step(mpi, waiting, step)?;
            sum.add(self.own < other);
            bit *= 2;
        }
        Ok(())
    }
}

/// What a leader has combined so far, and room for as much of another's.
struct Sum<'a, 'b> {
    data: &'a mut BytesViewMut<'b>,
    room: &'a mut [u8],
    reduction: Reduction,
}

impl Sum<'_, '_> {
    fn to(&self, host: usize) -> Step<'_> {
        Step {
            send: Some((host, self.data.as_view())),
            receive: None,
        }
    }

    /// Into the room.
    fn from(&mut self, host: usize) -> Step<'_> {
        Step {
            send: None,
            receive: Some((host, BytesViewMut::from_slice(self.room))),
        }
    }

    /// In place of what there is.
    fn whole_from(&mut self, host: usize) -> Step<'_> {
        let length_bytes = self.data.length_bytes();
        Step {
            send: None,
            receive: Some((host, self.data.part(0, length_bytes))),
        }
    }

    /// Combines what lies in the room, in the order of hosts.
    fn add(&mut self, own_is_first: bool) {
        let mut room = BytesViewMut::from_slice(self.room);
        if own_is_first {
            self.reduction.combine(self.data, room.as_view());
        } else {
            self.reduction.combine(&mut room, self.data.as_view());
            self.data.fill(0, room.as_view());
        }
    }
}

fn succeeded(code: c_int) -> Outcome {
    match code {
        0 => Ok(()),
        code => Err(Stop::Code(code)),
    }
}
