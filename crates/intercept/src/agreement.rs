// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the ranks of a communicator agree to meet in shared memory: all of them are in the same call
//! when they do, and ask each other by the MPI's own collectives. Called by communicators, once for
//! each. docs/collectives.md says what is agreed.
//!
//! Only ranks of the program that `weft run` started take part, since only those are known to have
//! this library: others would not answer.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use weft_collectives::{LAYOUT_VERSION, Nonblocking, RANK_LIMIT, Team, segment_bytes};
use weft_mpi_abi::Abi;
use weft_os::cpu;
use weft_os::map::RawMap;
use weft_os::process::{open_memfd_of, random_u64};
use weft_os::process_id::ProcessId;
use weft_os::region_file::{create_memfd, may_be_mapped};

use crate::across::{self, Across, Place};
use crate::asked::Asked;
use crate::domains;
use crate::functions::Handle;
use crate::in_place_tries::InPlaceTries;
use crate::leaders::{self, Leaders};
use crate::liveness::Liveness;
use crate::mpi::Mpi;
use crate::pending::{self, Pending};
use crate::reach::{self, Memories};
use crate::request_communicator::RequestCommunicator;
use crate::served::Served;
use crate::sessions;
use crate::waiting::Waiting;

/// Words of a [`Card`].
const CARD_WORDS: usize = 14;

/// What a rank tells the others of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Card {
    version: u64,
    process: ProcessId,
    /// The descriptor of the segment's file, and its number: of the first rank.
    descriptor: u64,
    nonce: u64,
    shares_cores: bool,
    /// What its process shares.
    heap: [u64; 4],
    /// The only processor that it may run on, counted from 1; 0 if there are several.
    processor: u64,
    /// Which kernel it runs under, as far as that is known.
    boot: u64,
    /// Whether calls that do not wait go on by themselves in its process.
    goes_on: bool,
    /// Its cache domain ([`domains::own_word`]).
    domain: u64,
}

/// What tells one host from another: ranks of one may map each other's memory.
type Host = (u64, u32);

impl Card {
    fn words(&self) -> [u64; CARD_WORDS] {
        let [length, descriptor, inode, place] = self.heap;
        [
            self.version,
            u64::from(self.process.pid) | u64::from(self.process.namespace) << 32,
            self.process.started_ticks,
            self.descriptor,
            self.nonce,
            u64::from(self.shares_cores),
            length,
            descriptor,
            inode,
            place,
            self.processor,
            self.boot,
            u64::from(self.goes_on),
            self.domain,
        ]
    }

    fn of_words(words: &[u64; CARD_WORDS]) -> Self {
        Self {
            version: words[0],
            process: ProcessId {
                pid: words[1] as u32,
                namespace: (words[1] >> 32) as u32,
                started_ticks: words[2],
            },
            descriptor: words[3],
            nonce: words[4],
            shares_cores: words[5] != 0,
            heap: [words[6], words[7], words[8], words[9]],
            processor: words[10],
            boot: words[11],
            goes_on: words[12] != 0,
            domain: words[13],
        }
    }

    fn host(&self) -> Host {
        (self.boot, self.process.namespace)
    }
}

/// Where a rank stands in a communicator.
#[derive(Clone, Copy)]
struct Standing {
    communicator: Handle,
    rank: usize,
    ranks: usize,
    asked: Asked,
}

/// Who carries a communicator's collectives out.
#[derive(Debug)]
pub enum Agreed {
    /// Its ranks, all of one host.
    Here(Box<Served>),
    /// Its ranks on several hosts.
    Across(Box<Across>),
}

/// Has the ranks of a communicator agree; all of them call it in the same call of the program.
/// `None`, on all of them, if it is left to the MPI.
pub fn agree(mpi: &'static Mpi, communicator: Handle) -> Option<Agreed> {
    let standing = standing(mpi, communicator)?;
    let (file, card) = own_card(mpi, standing);
    let cards = exchange(mpi, standing, card)?;
    let hosts: Vec<Host> = cards.iter().map(Card::host).collect();
    if hosts.iter().any(|host| *host != hosts[0]) {
        drop(file);
        return agree_across(mpi, standing, &hosts).map(Agreed::Across);
    }
    // Measured: where ranks share cores, Open MPI's messages over Weft take less time than a
    // meeting of all (docs/lab/2026-11-24-collectives-under-four-mpis.md).
    if share_cores(&cards) && mpi.abi == Abi::OpenMpi && !standing.asked.always {
        return None;
    }
    let served = join(mpi, standing, &cards);
    let all_can = agree_on(mpi, communicator, Can::of(served.as_ref()));
    // The file is needed until everybody has mapped it, and no longer.
    drop(file);
    all_can.of_what(served).map(Box::new).map(Agreed::Here)
}

/// The same for ranks on several hosts: the first rank of each makes the segment there.
fn agree_across(mpi: &'static Mpi, standing: Standing, hosts: &[Host]) -> Option<Box<Across>> {
    leaders::free_gone(mpi);
    let communicator = standing.communicator;
    let places = across::places(hosts);
    let own = *places.get(standing.rank)?;
    let hosts_with_more = places.iter().any(|place| place.rank > 0);
    if !standing.asked.always
        || !hosts_with_more
        || hosts.iter().any(|(_, namespace)| *namespace == 0)
    {
        return None;
    }
    let is_here = |at: &usize| places[*at].host == own.host;
    let ranks_here = (0..standing.ranks).filter(is_here).count();
    let here = Standing {
        rank: own.rank,
        ranks: ranks_here,
        ..standing
    };
    let (file, card) = own_card(mpi, here);
    let cards = exchange(mpi, standing, card)?;
    let all = cards.into_iter().enumerate();
    let cards: Vec<Card> = all
        .filter(|(at, _)| is_here(at))
        .map(|(_, card)| card)
        .collect();
    let served = join(mpi, here, &cards);
    let host_count = places.iter().filter(|place| place.rank == 0).count();
    let leaders = split(mpi, communicator, own);
    let can = match leaders {
        Some(_) => Can::of(served.as_ref()),
        None => Can::Nothing,
    };
    let leaders = leaders.flatten();
    let leaders = leaders.map(|leaders| Leaders::new(leaders, own.host, host_count));
    let all_can = agree_on(mpi, communicator, can);
    drop(file);
    let Some(here) = all_can.of_what(served) else {
        leaders.into_iter().for_each(Leaders::leave);
        return None;
    };
    Some(Box::new(Across {
        here,
        places,
        leaders,
        own,
    }))
}

/// The communicator of hosts' first ranks, none on others; `None` if the MPI refuses.
fn split(mpi: &Mpi, communicator: Handle, own: Place) -> Option<Option<Handle>> {
    let colour = match own.rank {
        0 => 0,
        _ => mpi.abi.undefined(),
    };
    let mut made = 0;
    // SAFETY: a collective that all ranks call now, and a place of ours.
    let code = unsafe { (mpi.functions.split)(communicator, colour, 0, &mut made) };
    (code == 0).then(|| (own.rank == 0).then(|| mpi.handle(made)))
}

/// Where this rank stands, if the communicator is one that can be served; asks nobody, and is alike
/// on all ranks.
fn standing(mpi: &Mpi, communicator: Handle) -> Option<Standing> {
    let mut is_inter = 0;
    // SAFETY: the program's communicator, and a place of ours.
    let code = unsafe { (mpi.functions.test_inter)(communicator, &mut is_inter) };
    if code != 0 || is_inter != 0 {
        return None;
    }
    let number = |function: unsafe extern "C" fn(Handle, *mut c_int) -> c_int, of: Handle| {
        let mut number = 0;
        // SAFETY: a communicator, and a place of ours.
        let code = unsafe { function(of, &mut number) };
        usize::try_from(number).ok().filter(|_| code == 0)
    };
    let ranks = number(mpi.functions.size, communicator)?;
    let rank = number(mpi.functions.rank, communicator)?;
    let world = number(mpi.functions.size, mpi.communicators.world)?;
    let asked = Asked::at_start()?;
    let may_be = (2..=RANK_LIMIT).contains(&ranks) && asked.ranks == world;
    (may_be && is_of_world(mpi, communicator, ranks)).then_some(Standing {
        communicator,
        rank,
        ranks,
        asked,
    })
}

/// Whether all ranks are ranks of MPI_COMM_WORLD, and not of another program.
fn is_of_world(mpi: &Mpi, communicator: Handle, ranks: usize) -> bool {
    let list: Vec<c_int> = (0..ranks as c_int).collect();
    let mut found = vec![mpi.abi.undefined(); ranks];
    let (mut group, mut world) = (0, 0);
    // SAFETY: communicators, places and lists of ours; the groups are freed here.
    unsafe {
        let functions = &mpi.functions;
        if (functions.group)(communicator, &mut group) != 0 {
            return false;
        }
        if (functions.group)(mpi.communicators.world, &mut world) == 0 {
            let (list, found) = (list.as_ptr(), found.as_mut_ptr());
            (functions.translate)(group, ranks as c_int, list, world, found);
            (functions.group_free)(&mut world);
        }
        (functions.group_free)(&mut group);
    }
    found.iter().all(|&rank| rank >= 0)
}

/// Segments one behind the other in the file: for calls that wait, and for those that do not.
const SEGMENTS: u64 = 2;

/// The name of a segment in /proc.
fn segment_name(nonce: u64) -> String {
    format!("weft-mpi-{LAYOUT_VERSION}-{nonce:016x}")
}

/// Whether ranks of one host, who have shown these cards, share cores; alike on all of them. A rank
/// that is bound to one processor takes itself to be alone there.
fn share_cores(cards: &[Card]) -> bool {
    let bound = |card: &&Card| card.processor != 0;
    let mut processors: Vec<u64> = cards
        .iter()
        .filter(bound)
        .map(|one| one.processor)
        .collect();
    let bound_count = processors.len();
    processors.sort_unstable();
    processors.dedup();
    processors.len() < bound_count || cards.iter().any(|card| card.shares_cores)
}

/// A number for the kernel that runs here, from random(4)'s boot_id; 0 if that cannot be read.
fn boot_number() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).unwrap_or(0);
    (number >> 64) as u64 ^ number as u64
}

/// What this rank tells; the first one makes the segment.
fn own_card(mpi: &'static Mpi, standing: Standing) -> (Option<OwnedFd>, Card) {
    let processor = cpu::only_processor();
    let mut card = Card {
        version: LAYOUT_VERSION,
        process: ProcessId::own(),
        descriptor: u64::MAX,
        nonce: 0,
        shares_cores: cpu::ranks_share_cores(),
        heap: reach::own_words(),
        processor: processor.map_or(0, |processor| u64::from(processor) + 1),
        boot: boot_number(),
        goes_on: pending::can_go_on(mpi) && !sessions::have_begun(),
        domain: domains::own_word(standing.rank, standing.asked, processor),
    };
    if standing.rank != 0 {
        return (None, card);
    }
    let make = || -> io::Result<(u64, OwnedFd)> {
        let nonce = random_u64()?;
        let bytes = SEGMENTS * segment_bytes(standing.ranks) as u64;
        Ok((nonce, create_memfd(&segment_name(nonce), bytes)?))
    };
    let Ok((nonce, file)) = make() else {
        return (None, card);
    };
    card.nonce = nonce;
    card.descriptor = u64::try_from(file.as_raw_fd()).unwrap_or(u64::MAX);
    (Some(file), card)
}

/// Gives everybody all cards.
fn exchange(mpi: &Mpi, standing: Standing, card: Card) -> Option<Vec<Card>> {
    let own = card.words();
    let mut all = vec![[0u64; CARD_WORDS]; standing.ranks];
    let bytes = size_of_val(&own) as c_int;
    let byte = mpi.datatypes.byte;
    // SAFETY: a collective that all ranks call now, on memory of ours of the length it names.
    let code = unsafe {
        (mpi.functions.allgather)(
            own.as_ptr().cast(),
            bytes,
            byte,
            all.as_mut_ptr().cast(),
            bytes,
            byte,
            standing.communicator,
        )
    };
    (code == 0).then(|| all.iter().map(Card::of_words).collect())
}

/// Maps the segment, if this rank can.
fn join(mpi: &'static Mpi, standing: Standing, cards: &[Card]) -> Option<Served> {
    let first = cards.first()?;
    let can_meet = |card: &Card| card.version == LAYOUT_VERSION && card.host() == first.host();
    if first.process.namespace == 0 || !cards.iter().all(can_meet) {
        return None;
    }
    let descriptor = i32::try_from(first.descriptor).ok()?;
    let name = segment_name(first.nonce);
    let file = open_memfd_of(first.process.pid, &name, descriptor).ok()?;
    let bytes = SEGMENTS as usize * segment_bytes(standing.ranks);
    let map = Some(file.as_fd()).filter(|&file| may_be_mapped(file));
    let map = RawMap::new(map?, bytes).ok()?;
    let base = NonNull::new(map.base())?;
    let shares_cores = share_cores(cards);
    let domains: Vec<u64> = cards.iter().map(|card| card.domain).collect();
    let shape = domains::shape(&domains, shares_cores);
    // SAFETY: the mapping has the length that the teams ask for, was all zero when the first rank
    // made it, and lives as long as they do; nothing else refers to it.
    let attach = |at: usize| unsafe {
        let base = base.add(at * segment_bytes(standing.ranks));
        Team::attach(base, standing.ranks, standing.rank, &shape).ok()
    };
    let (team, calls) = (attach(0)?, Nonblocking::new(attach(1)?));
    let map = Arc::new(map);
    let memory = cards.iter().map(|card| (card.process.pid, card.heap));
    let memories = Memories::map(standing.rank, memory);
    let liveness = Liveness::new(cards.iter().map(|card| card.process).collect());
    // Nobody has measured that calls which do not wait are worth it where ranks share cores.
    let waits_pay = !shares_cores || standing.asked.always;
    let go_on = waits_pay && cards.iter().all(|card| card.goes_on);
    let communicator = RequestCommunicator::new(standing.communicator);
    let (checks, segment) = (liveness.clone(), Arc::clone(&map));
    let pending = || Arc::new(Pending::new(communicator, calls, checks, segment));
    let pending = go_on.then(pending);
    let waiting = Waiting::new(mpi, liveness, shares_cores)?;
    Some(Served {
        team,
        waiting,
        memories,
        in_place_tries: InPlaceTries::default(),
        waits_pay,
        pending,
        segment: map,
    })
}

/// What a rank can do with the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Can {
    Nothing,
    Meet,
    ReadInPlace,
}

impl Can {
    fn of(served: Option<&Served>) -> Self {
        match served {
            Some(served) if served.memories.is_some() => Self::ReadInPlace,
            Some(_) => Self::Meet,
            None => Self::Nothing,
        }
    }

    /// What is left of what this rank can, if this is what all can.
    fn of_what(self, served: Option<Served>) -> Option<Served> {
        let mut served = served.filter(|_| self >= Self::Meet)?;
        served.memories = served.memories.filter(|_| self == Self::ReadInPlace);
        Some(served)
    }
}

/// What all ranks can.
fn agree_on(mpi: &Mpi, communicator: Handle, can: Can) -> Can {
    let (own, mut all): (c_int, c_int) = (can as c_int, 0);
    // SAFETY: a collective that all ranks call now, on places of ours.
    let code = unsafe {
        (mpi.functions.allreduce)(
            (&raw const own).cast::<c_void>(),
            (&raw mut all).cast(),
            1,
            mpi.datatypes.int,
            mpi.datatypes.min,
            communicator,
        )
    };
    match all {
        _ if code != 0 => Can::Nothing,
        1 => Can::Meet,
        2 => Can::ReadInPlace,
        _ => Can::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_says_what_it_was_told() {
        let card = Card {
            version: 3,
            process: ProcessId {
                pid: u32::MAX,
                namespace: 0xf000_0001,
                started_ticks: (1 << 48) - 1,
            },
            descriptor: 7,
            nonce: u64::MAX,
            shares_cores: true,
            heap: [1, 2, 3, 4],
            processor: 5,
            boot: 6,
            goes_on: true,
            domain: 8,
        };
        assert_eq!(Card::of_words(&card.words()), card);
    }

    #[test]
    fn ranks_that_are_bound_to_the_same_processor_share_it() {
        let card = |processor, shares_cores| Card {
            shares_cores,
            processor,
            ..Card::of_words(&[0; CARD_WORDS])
        };
        assert!(!share_cores(&[card(1, false), card(2, false)]));
        assert!(!share_cores(&[card(0, false), card(0, false)]));
        assert!(share_cores(&[
            card(2, false),
            card(1, false),
            card(2, false)
        ]));
        assert!(share_cores(&[card(0, false), card(0, true)]));
    }
}
