// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carries packets between the devices of the hosts, and does to them what the weather asks for.
//!
//! Made by the job, which changes the weather while packets fly; one thread. Its random numbers
//! follow from the seed; which packet meets which of them depends on the machine's timing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::packet;
use crate::system::priority;

/// Equal-cost paths between two hosts. Chosen: as a small fabric has.
const PATHS: u32 = 8;
/// Past packets that may be played again. Chosen: some span rounds and restarts.
const KEPT: usize = 2048;
/// A packet in this many is kept. Chosen, so that those that are kept cover a long time.
const KEEP_ONE_IN: u32 = 16;
/// Packets read from one device before the next has its turn. Chosen.
const BURST: usize = 64;
/// The longest packet: IPv4's own limit.
const PACKET_BYTES: usize = 65_536;

/// What happens to packets at present. Shares are in packets of a thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Weather {
    /// Dropped.
    pub loss: u32,
    /// Sent twice.
    pub duplication: u32,
    /// Held back for up to 5 ms, so that others overtake them.
    pub reordering: u32,
    /// Changed in one byte.
    pub corruption: u32,
    /// Followed by an old packet, from anywhere to anywhere.
    pub replay: u32,
    /// Paths that swallow everything, as bits.
    pub dead_paths: u8,
    /// What is no datagram is dropped, as by a firewall.
    pub firewall: bool,
}

/// What was done to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Carried, each counted once.
    pub carried: u64,
    /// Dropped at random.
    pub lost: u64,
    /// Sent twice.
    pub doubled: u64,
    /// Held back.
    pub reordered: u64,
    /// Changed.
    pub corrupted: u64,
    /// Old packets sent again.
    pub replayed: u64,
    /// Swallowed by a dead path.
    pub swallowed: u64,
    /// Dropped by the firewall.
    pub firewalled: u64,
}

impl Counts {
    /// Adds what another relay did.
    pub fn add(&mut self, other: &Self) {
        self.carried += other.carried;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.replayed += other.replayed;
        self.swallowed += other.swallowed;
        self.firewalled += other.firewalled;
    }
}

#[derive(Default)]
struct Shared {
    weather: Weather,
    counts: Counts,
    is_over: bool,
}

/// A running relay; dropping it ends it.
pub struct Relay {
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// Starts to carry between these devices, whose hosts have these addresses.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(devices: Vec<(Ipv4Addr, File)>, seed: u64) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let for_thread = Arc::clone(&shared);
        let mut carrier = Carrier {
            devices,
            random: fastrand::Rng::with_seed(seed),
            held: BinaryHeap::new(),
            kept: VecDeque::new(),
            began: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("relay".into())
            .spawn(move || {
                priority::raise();
                while carrier.turn(&for_thread) {}
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Changes the weather.
    pub fn set(&self, weather: Weather) {
        locked(&self.shared).weather = weather;
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        locked(&self.shared).counts
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        locked(&self.shared).is_over = true;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A packet that is held back: when it is due, in microseconds, and what it is.
type HeldBack = Reverse<(u64, Vec<u8>)>;

struct Carrier {
    devices: Vec<(Ipv4Addr, File)>,
    random: fastrand::Rng,
    held: BinaryHeap<HeldBack>,
    kept: VecDeque<Vec<u8>>,
    began: Instant,
}

impl Carrier {
    /// Waits for packets and carries them; false when it is over.
    fn turn(&mut self, shared: &Mutex<Shared>) -> bool {
        self.wait();
        let (weather, mut counts) = {
            let shared = locked(shared);
            if shared.is_over {
                return false;
            }
            (shared.weather, Counts::default())
        };
        self.release();
        let mut buffer = vec![0; PACKET_BYTES];
        for at in 0..self.devices.len() {
            for _ in 0..BURST {
                let Ok(length) = self.devices[at].1.read(&mut buffer) else {
                    break;
                };
                self.pass(buffer[..length].to_vec(), &weather, &mut counts);
            }
        }
        locked(shared).counts.add(&counts);
        true
    }

    fn wait(&self) {
        let timeout = match self.held.peek() {
            Some(_) => PollTimeout::from(1_u8),
            None => PollTimeout::from(20_u8),
        };
        let mut all: Vec<PollFd<'_>> = self
            .devices
            .iter()
            .map(|(_, device)| PollFd::new(device.as_fd(), PollFlags::POLLIN))
            .collect();
        let _ = poll(&mut all, timeout);
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Sends what was held back for long enough.
    fn release(&mut self) {
        let now = self.now_us();
        while self
            .held
            .peek()
            .is_some_and(|Reverse((due, _))| *due <= now)
        {
            if let Some(Reverse((_, packet))) = self.held.pop() {
                self.deliver(&packet);
            }
        }
    }

    fn happens(&mut self, of_thousand: u32) -> bool {
        of_thousand > 0 && self.random.u32(..1000) < of_thousand
    }

    fn pass(&mut self, mut packet: Vec<u8>, weather: &Weather, counts: &mut Counts) {
        counts.carried += 1;
        if !packet::is_datagram(&packet) {
            if weather.firewall {
                counts.firewalled += 1;
            } else {
                self.deliver(&packet);
            }
            return;
        }
        let path = packet::path(&packet, PATHS).unwrap_or(0);
        if weather.dead_paths >> path & 1 == 1 {
            counts.swallowed += 1;
            return;
        }
        if self.happens(weather.loss) {
            counts.lost += 1;
            return;
        }
        self.keep(&packet);
        if self.happens(weather.replay) && !self.kept.is_empty() {
            let old = self.kept[self.random.usize(..self.kept.len())].clone();
            self.deliver(&old);
            counts.replayed += 1;
        }
        if self.happens(weather.duplication) {
            self.deliver(&packet);
            counts.doubled += 1;
        }
        let (place, mask) = (self.random.usize(..), self.random.u8(..));
        if self.happens(weather.corruption) && packet::corrupt(&mut packet, place, mask) {
            counts.corrupted += 1;
        }
        if self.happens(weather.reordering) {
            let due = self.now_us() + self.random.u64(50..5_000);
            self.held.push(Reverse((due, packet)));
            counts.reordered += 1;
            return;
        }
        self.deliver(&packet);
    }

    fn keep(&mut self, packet: &[u8]) {
        if self.random.u32(..KEEP_ONE_IN) != 0 {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(packet.to_vec());
    }

    /// Gives a packet to the host it is for. A full device loses it, as a switch does.
    fn deliver(&self, packet: &[u8]) {
        let target = packet::target(packet);
        let device = self
            .devices
            .iter()
            .find(|(address, _)| Some(*address) == target);
        if let Some((_, device)) = device {
            let mut device = device;
            let _ = device.write(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_ends_when_it_is_dropped() {
        let relay = Relay::start(Vec::new(), 1).unwrap();
        relay.set(Weather::default());
        assert_eq!(relay.counts(), Counts::default());
        drop(relay);
    }
}
