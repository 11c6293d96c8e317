// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which runs count: all runs except those during which the machine had another speed than usual.
//!
//! Called by analysis when measuring is over; read by caveats, files and pages. The selection never
//! looks at the figure that a run measured. If fewer than half of the rounds would remain, all runs
//! are kept and the series is called doubtful.

use super::configuration::{Configuration, Workload};
use super::record::{Record, Turn};
use std::collections::BTreeMap;
use weft_statistics::speed::{Speed, Usual};

/// A configuration in a workload.
pub type Series = (Workload, Configuration);

/// The runs of a series that count, by round.
pub type Counted<'a> = BTreeMap<usize, &'a Turn>;

/// What counts and what does not.
pub struct Selection<'a> {
    /// Usual speed of the machine; `None` without runs.
    pub usual: Option<Usual>,
    /// Runs that count; of several in a round the last.
    pub counted: BTreeMap<Series, Counted<'a>>,
    /// Runs that were excluded: the machine's speed changed during them.
    pub excluded: Vec<&'a Turn>,
    /// Series whose runs all count although the machine changed its speed.
    pub doubtful: Vec<Series>,
    /// Runs that ended well: those that count and those that were excluded.
    pub run_count: usize,
}

impl<'a> Selection<'a> {
    /// Out of all runs.
    pub fn of(record: &'a Record) -> Self {
        let speeds: Vec<Speed> = record
            .turns
            .iter()
            .flat_map(|turn| [turn.before, turn.after])
            .collect();
        let mut selection = Self {
            usual: Usual::of(&speeds),
            counted: BTreeMap::new(),
            excluded: Vec::new(),
            doubtful: Vec::new(),
            run_count: 0,
        };
        let mut by_series: BTreeMap<Series, Vec<&Turn>> = BTreeMap::new();
        for turn in record.turns.iter().filter(|turn| turn.failure.is_none()) {
            by_series
                .entry((turn.workload.clone(), turn.configuration.clone()))
                .or_default()
                .push(turn);
            selection.run_count += 1;
        }
        for (series, turns) in by_series {
            selection.add(series, &turns);
        }
        selection
    }

    fn add(&mut self, series: Series, turns: &[&'a Turn]) {
        let sound = |turn: &&&Turn| self.usual.is_none_or(|usual| !usual.differs(&turn.speed()));
        let by_round = |turns: &mut dyn Iterator<Item = &&'a Turn>| -> Counted<'a> {
            turns.map(|turn| (turn.round, *turn)).collect()
        };
        let all = by_round(&mut turns.iter());
        let mut counted = by_round(&mut turns.iter().filter(sound));
        if counted.len() * 2 < all.len() {
            counted = all;
            self.doubtful.push(series.clone());
        } else {
            let left_out = turns.iter().filter(|turn| !sound(turn)).copied();
            self.excluded.extend(left_out);
        }
        self.counted.insert(series, counted);
    }
}
