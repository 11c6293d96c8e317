// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several pairs of ranks at once: the common part of multi_latency and message_rate.
//!
//! Called by those two; calls timing with an exchange of each pair.

use super::partner::Partner;
use crate::options::Settings;
use crate::timing::{self, Repetitions, Resize, Timing};
use weft_mpi::{Communicator, Result};

/// One exchange of each pair, and the samples that it leaves on this rank.
pub(super) struct Pairs<'a, E> {
    pub(super) world: &'a Communicator<'a>,
    pub(super) settings: &'a Settings,
    /// The ranks whose times count. The others have a communicator of their own.
    pub(super) timed: Communicator<'a>,
    /// Whether this rank is one of them.
    pub(super) is_timed: bool,
    /// `None` on a rank without a partner.
    exchange: Option<E>,
    pub(super) samples: Vec<f64>,
}

impl<'a, E: Resize> Pairs<'a, E> {
    /// Pairs of which `is_timed` picks the ranks whose times count.
    ///
    /// # Errors
    /// What the split of the communicator reports.
    pub(super) fn new(
        world: &'a Communicator<'a>,
        settings: &'a Settings,
        is_timed: impl FnOnce(&Partner) -> bool,
        exchange: impl FnOnce(Partner) -> E,
    ) -> Result<Self> {
        let partner = Partner::of(world, settings);
        let is_timed = partner.as_ref().is_some_and(is_timed);
        Ok(Self {
            world,
            settings,
            timed: world.split(i32::from(!is_timed), world.rank() as i32)?,
            is_timed,
            exchange: partner.map(exchange),
            samples: Vec::new(),
        })
    }

    /// Times a size; nothing on a rank without a partner.
    ///
    /// # Errors
    /// What MPI reports.
    pub(super) fn time(&mut self, size_bytes: usize, repetitions: &Repetitions) -> Result<Timing> {
        self.samples.reserve(repetitions.iterations);
        if let Some(exchange) = &mut self.exchange {
            exchange.resize(size_bytes)?;
        }
        self.world.barrier()?;
        match &mut self.exchange {
            Some(exchange) => timing::time(exchange, repetitions, &mut self.samples),
            None => Ok(Timing::default()),
        }
    }
}
