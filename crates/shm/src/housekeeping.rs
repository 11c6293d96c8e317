// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What must be done now and then and costs system calls: answering first contacts, noticing deaths (lives), ceasing to
//! poll silent lanes, giving the processor away. Called by receive when a round found nothing, and every so
//! many rounds that found something.

use std::collections::BTreeSet;

use crate::remote::Link;
use crate::transport::Transport;
use weft_contract::{Owner, RemoteId};
use weft_os::{clock, cpu, crash_point, sleep};

/// Empty rounds between looks at the clock. Chosen: a look costs about as much as three empty rounds.
const ROUNDS_PER_LOOK: u32 = 64;

/// Busy rounds between looks at the clock. Chosen: some hundreds of microseconds of small messages. A power of two.
const BUSY_ROUNDS_PER_TICK: u32 = 1024;

/// Time between ticks. Chosen: what a first contact that needs our help may wait.
const TICK_NS: u64 = 1_000_000;

/// Time between looks after the dead. Specified: a death is reported within a second.
const LIFE_CHECK_NS: u64 = 100_000_000;

/// Ticks without a message after which a lane is no longer polled, if many are. Chosen.
const QUIET_TICKS: u32 = 8;

/// Lanes that are polled however silent they are. Chosen: polling them costs less than ringing for them.
const ALWAYS_POLLED: usize = 4;

/// Empty rounds before a process that shares its processor gives it away. Chosen: a message that is on its way
/// comes within these, another rank's turn is worth more than further ones.
const SPIN_ROUNDS_SHARED: u32 = 16;

/// Looks for the next piece or chunk of a message that is under way. Chosen: about the time in which a piece is copied; coming back
/// through the application takes as long, and the piece is there before.
const PATIENT_LOOKS: u32 = 64;

/// Empty rounds before a process that has a processor to itself offers it nevertheless, and between offers.
/// Chosen: about a tenth of a millisecond.
const SPIN_ROUNDS_ALONE: u32 = 4096;

/// Ranks of a node up to which lanes have their pages from first contact on. Chosen: 32 MiB in all, at two lanes each.
const FEW_RANKS: u32 = 8;

/// Clocks and counters of the above.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    /// Empty rounds to go before something other than counting them.
    rounds_left: u32,
    /// Where `rounds_left` starts.
    step_rounds: u32,
    /// Empty rounds to go before the next look at the clock, and before the processor is offered to others, as of the
    /// last time that `rounds_left` was at its end.
    rounds_to_look: u32,
    rounds_to_yield: u32,
    /// Rounds that found something, and how many there were when `rounds_left` was last at its end.
    busy_rounds: u32,
    busy_rounds_before: u32,
    next_tick_ns: u64,
    next_life_check_ns: u64,
    /// The remote from which on silent ones are looked after next.
    pub(crate) next_silent: usize,
    /// Slots of remotes that were cut off, until these are dead.
    pub(crate) shut: BTreeSet<usize>,
    /// Empty rounds between offers of the processor.
    spin_rounds: u32,
    /// Whether the ranks of this node need more processors than there are.
    pub(crate) shares_cores: bool,
    /// Whether they are known to be so few that lanes may have their pages before they need them.
    pub(crate) has_few_ranks: bool,
}

impl Housekeeping {
    pub(crate) fn new() -> Self {
        let ranks = ranks_of_node();
        let shares_cores = ranks.unwrap_or(1) > cores();
        let spin_rounds = if shares_cores {
            SPIN_ROUNDS_SHARED
        } else {
            SPIN_ROUNDS_ALONE
        };
        let step_rounds = spin_rounds.min(ROUNDS_PER_LOOK);
        Self {
            rounds_left: step_rounds,
            step_rounds,
            rounds_to_look: ROUNDS_PER_LOOK,
            rounds_to_yield: spin_rounds,
            busy_rounds: 0,
            busy_rounds_before: 0,
            next_tick_ns: 0,
            next_life_check_ns: 0,
            next_silent: 0,
            shut: BTreeSet::new(),
            spin_rounds,
            shares_cores,
            has_few_ranks: !shares_cores && ranks.is_some_and(|ranks| ranks <= FEW_RANKS),
        }
    }

    /// A round found something; true if there have been so many that it is time to look at the clock.
    #[inline(always)]
    pub(crate) fn busy(&mut self) -> bool {
        self.rounds_left = self.step_rounds;
        self.busy_rounds = self.busy_rounds.wrapping_add(1);
        self.busy_rounds % BUSY_ROUNDS_PER_TICK == 0
    }

    /// A round found nothing. False, and it is not counted, if there is more to be done than to count it.
    #[inline(always)]
    pub(crate) fn pass(&mut self) -> bool {
        let passes = self.rounds_left > 1;
        self.rounds_left -= u32::from(passes);
        passes
    }

    /// `rounds_left` came to its end: whether to offer the processor, and whether to look at the clock.
    #[cold]
    fn take_stock(&mut self) -> (bool, bool) {
        let step = self.step_rounds;
        self.rounds_left = step;
        if self.busy_rounds_before != self.busy_rounds {
            self.busy_rounds_before = self.busy_rounds;
            self.rounds_to_yield = self.spin_rounds;
        }
        (
            count_down(&mut self.rounds_to_yield, step, self.spin_rounds),
            count_down(&mut self.rounds_to_look, step, ROUNDS_PER_LOOK),
        )
    }

    /// How often to look for the rest of a message whose first part is here, before the application gets its turn.
    #[inline(always)]
    pub(crate) fn patience(&self) -> u32 {
        if self.shares_cores { 0 } else { PATIENT_LOOKS }
    }

    /// Something waits for the next tick.
    pub(crate) fn hurry(&mut self) {
        self.next_tick_ns = 0;
        self.rounds_to_look = 0;
        self.rounds_left = 1;
    }
}

/// Counts `step` rounds; true, and the count is `full` again, when it came to its end.
fn count_down(left: &mut u32, step: u32, full: u32) -> bool {
    *left = left.saturating_sub(step);
    let ended = *left == 0;
    if ended {
        *left = full;
    }
    ended
}

/// Variables in which launchers say how many ranks run on this node. Specified by Open MPI, Hydra (MPICH), Intel
/// MPI and Slurm.
const LOCAL_SIZE_VARIABLES: [&str; 5] = [
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "I_MPI_LOCAL_SIZE",
    "PALS_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
];

/// How many ranks run on this node, if the launcher says so.
fn ranks_of_node() -> Option<u32> {
    LOCAL_SIZE_VARIABLES
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Processors that the ranks of this node share. Ranks bound to one each are taken to have it to themselves.
fn cores() -> u32 {
    match cpu::allowed_count() {
        1 => cpu::online_count(),
        allowed => allowed,
    }
}

impl Transport {
    /// A round found nothing.
    #[inline]
    pub(crate) fn idle<O: Owner>(&mut self, owner: &mut O) {
        self.housekeeping.rounds_left -= 1;
        if self.housekeeping.rounds_left == 0 {
            self.idle_long(owner);
        }
    }

    #[cold]
    fn idle_long<O: Owner>(&mut self, owner: &mut O) {
        let (offer_processor, look) = self.housekeeping.take_stock();
        if offer_processor {
            sleep::yield_now();
        }
        if look {
            self.look_at_clock(owner);
        }
    }

    #[cold]
    pub(crate) fn look_at_clock<O: Owner>(&mut self, owner: &mut O) {
        let now_ns = clock::monotonic_ns();
        if now_ns < self.housekeeping.next_tick_ns {
            return;
        }
        self.housekeeping.next_tick_ns = now_ns + TICK_NS;
        self.own.answer_askers();
        self.continue_contacts();
        self.hear_refusals();
        self.rest_silent_lanes();
        self.publish(now_ns);
        if now_ns >= self.housekeeping.next_life_check_ns {
            self.housekeeping.next_life_check_ns = now_ns + LIFE_CHECK_NS;
            self.check_lives(owner);
            self.free_abandoned_slots();
        }
    }

    fn continue_contacts(&mut self) {
        for index in 0..self.remotes.len() {
            let remote = RemoteId(index as u32);
            if matches!(self.remotes[index].link, Link::Asking(..)) {
                self.continue_asking(remote);
            }
        }
    }

    pub(crate) fn start_polling(&mut self, slot: usize) {
        let Some(lane) = self.inbound[slot].as_mut() else {
            return;
        };
        lane.quiet_ticks = 0;
        lane.consumer.set_polled(true);
        if !self.polled.contains(&slot) {
            self.polled.push(slot);
        }
    }

    /// Ceases to poll lanes that have been silent. A lane is first marked, then polled for one tick more, since
    /// its sender may have looked at the mark just before; a tick is far longer than a store needs to be seen.
    fn rest_silent_lanes(&mut self) {
        let mut index = 0;
        while index < self.polled.len() {
            let many = self.polled.len() > ALWAYS_POLLED;
            let slot = self.polled[index];
            let Some(lane) = self.inbound[slot].as_mut() else {
                self.polled.swap_remove(index);
                continue;
            };
            lane.quiet_ticks = if lane.received > 0 {
                0
            } else {
                lane.quiet_ticks.saturating_add(1)
            };
            if lane.has_news() {
                let (new, all) = lane.fold();
                self.statistics.received[0] += new[0];
                self.statistics.received[1] += new[1];
                self.own.region.slots().publish_inflow(slot, all[0], all[1]);
            }
            match lane.quiet_ticks {
                QUIET_TICKS if many => {
                    lane.consumer.set_polled(false);
                    crash_point!(
                        39,
                        "rest: a silent lane is to be rung for, and still polled"
                    );
                }
                0 => lane.consumer.set_polled(true),
                ticks if ticks > QUIET_TICKS && many => {
                    lane.consumer.set_polled(false);
                    if ticks > QUIET_TICKS + 1 && !lane.consumer.has_message() {
                        self.polled.swap_remove(index);
                        continue;
                    }
                }
                _ => {}
            }
            index += 1;
        }
    }
}
