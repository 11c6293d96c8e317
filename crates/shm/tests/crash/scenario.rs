// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What two processes exchange while one of them is killed: a scenario for each protocol, and the
//! part of each side in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use weft_contract::{RemoteId, Sleep, TransferError};
use weft_os::sleep::wait_readable;
use weft_shm::{Settings, SingleCopy, Transport};

use crate::side::{DONE_TAG, HELLO_TAG, LONG, Side, heap};

/// One exchange: `count` messages one way, then a word back.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub length: usize,
    pub count: u64,
    /// Each message is answered by one of the same length before the next one.
    pub answered: bool,
    /// Sends are over when they are delivered.
    pub delivery: bool,
    pub single_copy: SingleCopy,
    /// Regions in a folder: they must be asked for.
    pub folder: bool,
    /// The receiver sleeps between messages.
    pub sleeps: bool,
    /// The victim has five more remotes, which fall silent and leave.
    pub silent_remotes: bool,
    /// Messages lie in a heap that their receiver maps.
    pub mapped: bool,
}

const PLAIN: Scenario = Scenario {
    name: "inline",
    length: 8,
    count: 200,
    answered: false,
    delivery: false,
    single_copy: SingleCopy::Never,
    folder: false,
    sleeps: false,
    silent_remotes: false,
    mapped: false,
};

/// All of them. Lengths are those of docs/shm-layout.md, clause 5.
pub const SCENARIOS: [Scenario; 16] = [
    PLAIN,
    Scenario {
        name: "asked-for",
        folder: true,
        count: 4,
        ..PLAIN
    },
    Scenario {
        name: "eager",
        length: 3000,
        ..PLAIN
    },
    Scenario {
        name: "streamed",
        length: 60_000,
        count: 8,
        ..PLAIN
    },
    Scenario {
        name: "single-copy",
        length: LONG,
        count: 4,
        single_copy: SingleCopy::Always,
        ..PLAIN
    },
    // Plain and non-temporal stores are tried, in turns.
    Scenario {
        name: "pipelined",
        length: LONG,
        count: 8,
        ..PLAIN
    },
    // The two pipes and single copy are tried first.
    Scenario {
        name: "shared",
        length: LONG,
        answered: true,
        delivery: true,
        single_copy: SingleCopy::Auto,
        count: 14,
        ..PLAIN
    },
    // The two pipes are tried first, and the first lap does not count: one message at a time, so
    // that each is chosen by those before.
    Scenario {
        name: "mapped",
        length: LONG,
        answered: true,
        delivery: true,
        count: 8,
        mapped: true,
        ..PLAIN
    },
    Scenario {
        name: "wide",
        length: 60_000,
        count: 90,
        ..PLAIN
    },
    // Chunks go to and fro, once the lanes are wide.
    Scenario {
        name: "answered",
        length: 60_000,
        count: 90,
        answered: true,
        ..PLAIN
    },
    // Once the lanes are wide, messages begin unasked, and their rest comes in parts.
    Scenario {
        name: "begun",
        length: 150_000,
        count: 12,
        answered: true,
        delivery: true,
        ..PLAIN
    },
    Scenario {
        name: "receipt",
        length: 8,
        count: 8,
        delivery: true,
        ..PLAIN
    },
    Scenario {
        name: "receipt-streamed",
        length: 60_000,
        count: 4,
        delivery: true,
        ..PLAIN
    },
    Scenario {
        name: "receipt-pipelined",
        length: LONG,
        count: 3,
        delivery: true,
        ..PLAIN
    },
    Scenario {
        name: "sleeping",
        count: 6,
        sleeps: true,
        ..PLAIN
    },
    Scenario {
        name: "silent-remotes",
        count: 4,
        silent_remotes: true,
        ..PLAIN
    },
];

/// Who sends the messages of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Sends,
    Receives,
}

impl Part {
    pub fn other(self) -> Self {
        match self {
            Self::Sends => Self::Receives,
            Self::Receives => Self::Sends,
        }
    }
}

impl Scenario {
    pub fn settings(&self, address: SocketAddr) -> Settings {
        Settings {
            address: Some(address),
            single_copy: self.single_copy,
            heap: self.mapped.then(heap),
            directory: self.folder.then(std::env::temp_dir),
            ..Settings::default()
        }
    }

    /// Plays one part to its end, or until the other side is lost.
    ///
    /// # Errors
    /// Why the other side is lost.
    ///
    /// # Panics
    /// If it takes longer than `limit`.
    pub fn play(&self, side: &mut Side, part: Part, limit: Duration) -> Result<(), TransferError> {
        let mut clock = Patience {
            end: Instant::now() + limit,
            what: self.name,
            sleeps: self.sleeps,
        };
        if self.answered {
            return self.play_answered(&mut clock, side, part);
        }
        if part == Part::Receives {
            clock.until(side, |side| {
                side.ledger.arrived >= self.count && side.ledger.landing.is_empty()
            })?;
            return clock.post(side, DONE_TAG, 8, false);
        }
        clock.sleeps = false;
        for tag in 0..self.count {
            clock.post(side, tag, self.length, self.delivery)?;
            if self.sleeps {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        clock.until(side, |side| {
            side.ledger.done > 0 && side.ledger.sending == 0
        })
    }
}

impl Scenario {
    /// As [`Self::play`], with an answer to each message.
    fn play_answered(
        &self,
        clock: &mut Patience,
        side: &mut Side,
        part: Part,
    ) -> Result<(), TransferError> {
        for tag in 0..self.count {
            if part == Part::Sends {
                clock.post(side, tag, self.length, self.delivery)?;
            }
            clock.until(side, |side| {
                side.ledger.arrived > tag && side.ledger.landing.is_empty()
            })?;
            if part == Part::Receives {
                clock.post(side, tag, self.length, self.delivery)?;
            }
        }
        if part == Part::Receives {
            // Who closes before a long answer is delivered takes it along.
            clock.until(side, |side| side.ledger.sending == 0)?;
            return clock.post(side, DONE_TAG, 8, false);
        }
        clock.until(side, |side| {
            side.ledger.done > 0 && side.ledger.sending == 0
        })
    }
}

/// Waits for a while, and says what for when it was too long.
struct Patience {
    end: Instant,
    what: &'static str,
    sleeps: bool,
}

impl Patience {
    fn post(
        &self,
        side: &mut Side,
        tag: u64,
        length: usize,
        delivery: bool,
    ) -> Result<(), TransferError> {
        while !side.post(tag, length, delivery)? {
            side.progress();
            self.check(side)?;
        }
        side.progress();
        Ok(())
    }

    fn until(
        &self,
        side: &mut Side,
        mut is_done: impl FnMut(&Side) -> bool,
    ) -> Result<(), TransferError> {
        while !is_done(side) {
            if side.progress() == 0 && self.sleeps && side.transport.before_sleep() {
                wait_readable(side.transport.wait_fd().expect("a descriptor"), 20);
                side.transport.after_sleep();
            }
            // The last word and the goodbye may come together.
            if is_done(side) {
                break;
            }
            self.check(side)?;
        }
        Ok(())
    }

    fn check(&self, side: &Side) -> Result<(), TransferError> {
        assert!(
            Instant::now() < self.end,
            "{}: no end: {} arrived, {} words, {} sends and {} receives under way",
            self.what,
            side.ledger.arrived,
            side.ledger.done,
            side.ledger.sending,
            side.ledger.landing.len()
        );
        side.ledger.lost.map_or(Ok(()), Err)
    }
}

/// The victim's five silent remotes: they send a word each, and the victim hears nothing more of
/// them until they close.
pub fn with_silent_remotes(side: &mut Side, play: impl FnOnce(&mut Side)) {
    let address = side.transport.local_address();
    let mut others: Vec<Side> = (0..5)
        .map(|_| {
            let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            Side::open(
                Settings {
                    address: Some(any_port),
                    ..Settings::default()
                },
                address,
            )
        })
        .collect();
    for other in &mut others {
        while !other.post(HELLO_TAG, 8, false).expect("it is this process") {
            other.progress();
        }
    }
    let end = Instant::now() + Duration::from_millis(150);
    while Instant::now() < end || side.ledger.hello < others.len() as u64 {
        side.progress();
    }
    play(side);
    drop(others);
    for _ in 0..100 {
        side.progress();
    }
}

/// Says the first word, so that the other side knows that this address lives again.
pub fn say_hello(side: &mut Side) {
    let end = Instant::now() + Duration::from_secs(60);
    while !side.post(HELLO_TAG, 8, false).expect("the parent lives") {
        side.progress();
        assert!(Instant::now() < end, "no contact");
    }
}

/// Hears of the death of the other side however little it has to do with it.
pub fn watch(transport: &mut Transport) {
    transport.watch(RemoteId(0), true);
}
