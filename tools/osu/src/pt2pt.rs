// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks between pairs of ranks.
//!
//! Made by runner through [`make`]. The modules:
//!
//! - what is repeated: [`ping_pong`], [`window`], or the same by [`persistent`] messages, with a
//!   [`partner`]
//! - two ranks: [`latency`] and [`bandwidth`]
//! - several [`pairs`]: [`multi_latency`] and [`message_rate`]
//! - several [`threads`], or ranks with child [`processes`]

pub(crate) mod bandwidth;
pub(crate) mod latency;
mod message_rate;
mod multi_latency;
mod pairs;
mod partner;
mod persistent;
mod ping_pong;
mod processes;
mod threads;
mod window;

use crate::benchmark::Benchmark;
use crate::description::{Helpers, PointToPoint};
use crate::options::Settings;
use bandwidth::Bandwidth;
use latency::Latency;
use message_rate::MessageRate;
use multi_latency::MultiLatency;
use partner::Partner;
use persistent::{PersistentMessages, Shape};
use ping_pong::PingPong;
use processes::Processes;
use threads::Threads;
use weft_mpi::{Communicator, Result};
use window::Window;

/// Makes a benchmark with all the memory it needs.
///
/// # Errors
/// What MPI reports; `Argument` when MPI does not allow the threads of latency_mt, or the system
/// the processes of latency_mp.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    which: PointToPoint,
) -> Result<Box<dyn Benchmark + 'a>> {
    let latency = || {
        let ping_pong = PingPong::new(world, settings, Partner::of_two(world));
        Latency::new(world, settings, ping_pong)
    };
    Ok(match which {
        PointToPoint::Latency => Box::new(latency()),
        PointToPoint::LatencyWith(Helpers::Threads) => Box::new(Threads::new(world, settings)?),
        PointToPoint::LatencyWith(Helpers::Processes) => {
            Box::new(Processes::fork(world, settings, latency)?)
        }
        PointToPoint::MultiLatency => Box::new(MultiLatency::new(world, settings)?),
        PointToPoint::MessageRate => Box::new(MessageRate::new(world, settings)?),
        PointToPoint::Bandwidth(directions) => {
            let window = Window::new(world, settings, Partner::of_two(world), directions);
            Box::new(Bandwidth::new(world, settings, window, directions))
        }
        PointToPoint::PersistentLatency => {
            let round_trip = PersistentMessages::new(world, settings, Shape::RoundTrip);
            Box::new(Latency::new(world, settings, round_trip))
        }
        PointToPoint::PersistentBandwidth(directions) => {
            let window = PersistentMessages::new(world, settings, Shape::Window(directions));
            Box::new(Bandwidth::new(world, settings, window, directions))
        }
    })
}
