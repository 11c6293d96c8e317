// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of several alternatives costs least, found by taking them in turns: the copy method of a
//! receiver (copies), the protocol of a sender (protocols), the stores of a sender as its receiver
//! sees them (stores). Pure: knows neither clocks nor memory.
//!
//! A *sample* is what something cost under one alternative: a transfer, or a whole window of
//! messages. One alternative is the *usual* one. Now and then another one has a *trial*: some
//! samples in a row, or in turns with the usual one. Samples that come right after a change tell
//! nothing, since they pay for what the alternative before them left in the caches: they are
//! *settling*. What is tried, when, and what it takes to win are the [`Rules`] of each port.

pub(crate) mod copies;
pub(crate) mod protocols;
pub(crate) mod stores;

/// Most samples that say what an alternative costs.
const MOST_RECENT: usize = 3;

/// What a port goes by; all of it is chosen or measured there.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The latest samples of an alternative that say what it costs: 1 to 3.
    pub(crate) recent: usize,
    pub(crate) estimate: Estimate,
    /// Samples after a change that usually tell nothing; periods are reckoned with them.
    pub(crate) settling: u32,
    /// Samples before the first choice: of each alternative where costs are kept, else of the usual
    /// one.
    pub(crate) first: u32,
    /// Samples of a trial.
    pub(crate) trial: u32,
    /// Whether the usual one has a sample between each two of a trial.
    pub(crate) alternates: bool,
    /// A sample that costs more than so many times the best ends its trial.
    pub(crate) hopeless: u64,
    /// How samples of different times compare.
    pub(crate) costs: Costs,
    /// Samples between trials: of an alternative where costs are kept, else of the usual one.
    pub(crate) shortest_period: u64,
    /// The same before any trial was won, where costs are fresh. A first trial may meet what
    /// happens only once, such as the mapping of memory; then the next one should come soon.
    pub(crate) first_period: u64,
    pub(crate) longest_period: u64,
}

/// How samples say what an alternative costs.
#[derive(Debug)]
pub(crate) enum Estimate {
    /// By the median sample: neither an interruption nor a lucky sample counts.
    Median,
    /// By the smallest sample: interruptions do not count.
    Least,
}

/// How samples of different times compare.
#[derive(Debug)]
pub(crate) enum Costs {
    /// They compare. So at any time the cheapest alternative is the usual one. An alternative that
    /// costs n times as much is tried after n - 1 times the shortest period, so that the trials of
    /// all alternatives cost the same.
    Kept,
    /// They do not compare, because they include what the application does. So the samples of a
    /// trial are compared with the samples around it, and each trial that fails doubles the period.
    Fresh {
        /// The other alternative must be cheaper by this part of the usual cost; `None`: by any
        /// part.
        margin: Option<u64>,
        /// This many samples in a row that cost 1.5 times what the usual alternative cost when it
        /// was settled bring the next trial forward, if the last trial is that many samples ago.
        slower: Option<(u32, u64)>,
    },
}

/// What is known of an alternative.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    recent: [u64; MOST_RECENT],
    samples: u32,
    /// How often others were taken since it was.
    idle: u64,
}

impl Known {
    fn cost(&self, rules: &Rules) -> Option<u64> {
        let mut recent = self.recent;
        let known = &mut recent[..rules.recent.min(self.samples as usize)];
        known.sort_unstable();
        match rules.estimate {
            Estimate::Least => known.first().copied(),
            Estimate::Median => known.get(known.len().saturating_sub(1) / 2).copied(),
        }
    }

    fn push(&mut self, rules: &Rules, cost: u64) {
        self.recent[self.samples as usize % rules.recent] = cost;
        self.samples = self.samples.saturating_add(1);
    }
}

/// A trial under way.
#[derive(Clone, Copy, Debug)]
struct Trial {
    challenger: usize,
    /// Samples that it is still to take.
    left: u32,
    /// The usual one has its turn next.
    is_between: bool,
}

/// When the next trial comes, where costs are fresh.
#[derive(Clone, Copy, Debug)]
struct NextTrial {
    /// Samples of the usual one until then, and after how many the one after it comes.
    left: u64,
    period: u64,
    /// What the usual one cost when it was settled, and samples in a row that were much slower.
    settled: Option<u64>,
    slower: u32,
}

/// Which alternatives the next sample may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open<const N: usize> {
    pub(crate) alternatives: [bool; N],
    /// One of them, taken where nothing else decides; the usual one at first.
    pub(crate) default: usize,
    /// Whether a trial may begin.
    pub(crate) may_try: bool,
}

impl<const N: usize> Open<N> {
    /// The one of which this is least, the default among equals.
    fn least<K: Ord>(&self, of: impl Fn(usize) -> K) -> usize {
        let all = (0..N).filter(|&one| self.alternatives[one]);
        all.fold(
            self.default,
            |least, one| {
                if of(one) < of(least) { one } else { least }
            },
        )
    }
}

/// What is known of `N` alternatives. Where costs are fresh, the first one is usual at first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuner<const N: usize> {
    known: [Known; N],
    /// Where costs are fresh.
    usual: usize,
    trial: Option<Trial>,
    next_trial: NextTrial,
    /// The alternative of the last samples, and how many in a row.
    row: Option<(usize, u32)>,
    /// Samples after a change that tell nothing.
    settling: u32,
}

impl<const N: usize> Tuner<N> {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            known: [Known::default(); N],
            usual: 0,
            trial: None,
            next_trial: NextTrial {
                left: u64::from(rules.first),
                period: rules.first_period,
                settled: None,
                slower: 0,
            },
            row: None,
            settling: 0,
        }
    }

    /// As if this alternative had been found to be the cheapest, and none were to be tried soon.
    #[cfg(test)]
    pub(crate) fn found(rules: &Rules, usual: usize) -> Self {
        let mut found = Self::new(rules);
        (found.usual, found.next_trial.left) = (usual, u64::MAX);
        found
    }

    /// From now on so many samples after a change tell nothing; none do so at first.
    pub(crate) fn settle_for(&mut self, samples: u32) {
        self.settling = samples;
    }

    /// What the next sample takes. To be asked once for each.
    pub(crate) fn next(&mut self, rules: &Rules, open: &Open<N>) -> usize {
        let taken = self.next_turn(rules, open).unwrap_or_else(|| {
            self.end_trial(rules);
            match self.challenger(rules, open) {
                Some((challenger, samples)) => self.begin_trial(rules, challenger, samples),
                None => self.usual(rules, open),
            }
        });
        for known in &mut self.known {
            known.idle += 1;
        }
        self.known[taken].idle = 0;
        taken
    }

    /// A sample of this alternative cost so much.
    pub(crate) fn learn(&mut self, rules: &Rules, alternative: usize, cost: u64) {
        let before = self.row.filter(|&(last, _)| last == alternative);
        let in_a_row = before.map_or(0, |(_, count)| count.saturating_add(1));
        self.row = Some((alternative, in_a_row));
        if in_a_row < self.settling {
            return;
        }
        let best = match rules.costs {
            Costs::Kept => self
                .known
                .iter()
                .filter_map(|known| known.cost(rules))
                .min(),
            Costs::Fresh { .. } => self.known[self.usual].cost(rules),
        };
        self.known[alternative].push(rules, cost);
        match self.trial {
            Some(trial) if trial.challenger == alternative && trial.left > 0 => {
                if cost > best.unwrap_or(0).saturating_mul(rules.hopeless) {
                    self.give_up(rules);
                }
            }
            None => self.watch(rules, cost),
            Some(_) => {}
        }
    }

    /// The trial under way has failed, or is not to go on.
    pub(crate) fn give_up(&mut self, rules: &Rules) {
        if self.trial.take().is_some() {
            self.next_trial.period = (self.next_trial.period * 2).min(rules.longest_period);
            self.rest(rules);
        }
    }

    /// Whether a trial is under way.
    pub(crate) fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether nothing is known.
    pub(crate) fn is_new(&self) -> bool {
        self.known.iter().all(|known| known.samples == 0)
    }

    /// Whether enough is known of an alternative for the first choice.
    pub(crate) fn knows(&self, rules: &Rules, alternative: usize) -> bool {
        self.known[alternative].samples >= rules.first
    }

    /// The cheapest of those of which enough is known.
    pub(crate) fn cheapest(&self, rules: &Rules) -> Option<usize> {
        let known = (0..N).filter(|&one| self.knows(rules, one));
        known.min_by_key(|&one| self.known[one].cost(rules))
    }

    /// Takes over which alternatives cost more than so many halves of the best where something
    /// alike is tuned: they are not tried at first.
    pub(crate) fn learn_from(&mut self, rules: &Rules, other: &Self, halves: u64) {
        let best = other
            .known
            .iter()
            .filter_map(|known| known.cost(rules))
            .min();
        for (known, theirs) in self.known.iter_mut().zip(&other.known) {
            if let (Some(cost), Some(best)) = (theirs.cost(rules), best)
                && cost.saturating_mul(2) > best.saturating_mul(halves)
            {
                *known = Known {
                    recent: [cost; MOST_RECENT],
                    samples: rules.recent as u32,
                    idle: 0,
                };
            }
        }
    }

    /// The next sample of the trial under way; None if there is none, or no more of it.
    fn next_turn(&mut self, rules: &Rules, open: &Open<N>) -> Option<usize> {
        let trial = self.trial.as_mut();
        let trial = trial.filter(|trial| trial.left > 0 && open.alternatives[trial.challenger])?;
        let is_between = trial.is_between;
        trial.is_between = rules.alternates && !is_between;
        if is_between {
            return Some(self.usual);
        }
        trial.left -= 1;
        Some(trial.challenger)
    }

    fn begin_trial(&mut self, rules: &Rules, challenger: usize, samples: u32) -> usize {
        if matches!(rules.costs, Costs::Fresh { .. }) {
            self.known[challenger] = Known::default();
        }
        self.trial = Some(Trial {
            challenger,
            left: samples - 1,
            is_between: rules.alternates,
        });
        challenger
    }

    /// All samples of a trial are taken: where costs are fresh, the challenger has won or not.
    fn end_trial(&mut self, rules: &Rules) {
        let (Some(trial), Costs::Fresh { margin, .. }) = (self.trial, &rules.costs) else {
            self.trial = None;
            return;
        };
        let cost = |alternative: usize| self.known[alternative].cost(rules);
        let limit = cost(self.usual).map(|usual| usual - margin.map_or(0, |part| usual / part));
        if cost(trial.challenger) >= limit {
            return self.give_up(rules);
        }
        self.trial = None;
        self.usual = trial.challenger;
        self.next_trial.period = rules.shortest_period;
        self.rest(rules);
    }

    /// The next trial is a period away.
    fn rest(&mut self, rules: &Rules) {
        self.next_trial.left = self.next_trial.period;
        self.next_trial.slower = 0;
        self.next_trial.settled = self.known[self.usual].cost(rules);
    }

    /// The usual one, where there is no trial, cost so much.
    fn watch(&mut self, rules: &Rules, cost: u64) {
        let Costs::Fresh { slower, .. } = rules.costs else {
            return;
        };
        if let (Some((limit, rest)), Some(settled)) = (slower, self.next_trial.settled) {
            let is_slower = cost > settled + settled / 2;
            self.next_trial.slower = if is_slower {
                self.next_trial.slower + 1
            } else {
                0
            };
            let since_trial = self.next_trial.period.saturating_sub(self.next_trial.left);
            if self.next_trial.slower >= limit && since_trial >= rest {
                self.next_trial.period = rules.shortest_period;
                self.rest(rules);
                self.next_trial.left = 1;
            }
        }
        self.next_trial.left = self.next_trial.left.saturating_sub(1);
    }

    fn usual(&self, rules: &Rules, open: &Open<N>) -> usize {
        match rules.costs {
            Costs::Fresh { .. } => self.usual,
            Costs::Kept => open.least(|one| self.known[one].cost(rules)),
        }
    }

    /// The alternative that is to be tried now, and in how many samples.
    fn challenger(&self, rules: &Rules, open: &Open<N>) -> Option<(usize, u32)> {
        let usual = self.usual(rules, open);
        let mut others = (0..N).filter(|&one| open.alternatives[one] && one != usual);
        if !open.may_try {
            return None;
        }
        if matches!(rules.costs, Costs::Fresh { .. }) {
            let challenger = others.next().filter(|_| self.next_trial.left == 0)?;
            return Some((challenger, rules.trial));
        }
        let rarest = open.least(|one| self.known[one].samples);
        if !self.knows(rules, rarest) {
            return Some((rarest, self.settling + rules.first));
        }
        let best = self.known[usual].cost(rules)?;
        let due = others.find(|&one| self.is_due(rules, one, best))?;
        Some((due, self.settling + rules.trial))
    }

    /// Whether it is time to try one again whose costs are kept, where the best costs so much.
    fn is_due(&self, rules: &Rules, alternative: usize, best: u64) -> bool {
        let (known, best) = (&self.known[alternative], best.max(1));
        let cost = known.cost(rules).unwrap_or(0);
        // One that is hopeless ends after its first sample.
        let is_hopeless = cost > best.saturating_mul(rules.hopeless);
        let told = if is_hopeless { 1 } else { rules.trial };
        let samples = u64::from(self.settling + told);
        let usual = u64::from(rules.settling + rules.trial);
        // Where several are under way a change disturbs those besides.
        let weight = samples * samples.max(usual) / usual;
        let shortest = rules.shortest_period * weight / usual;
        let period = shortest.saturating_mul(cost.saturating_sub(best)) / best;
        known.idle >= period.clamp(shortest, rules.longest_period)
    }
}

#[cfg(test)]
mod tests;
