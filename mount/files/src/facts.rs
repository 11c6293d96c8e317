// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known of the names in one folder. [`crate::nodes`] holds one of these for each folder.
//!
//! A fact says that at one moment a name stood for a certain thing, or for nothing. A complete
//! listing is also a fact about all names that are not in it.
//!
//! A fact is believed for the mount's time to live. Facts from a listing are believed as long as a
//! program reads the listing, and for the time to live after that. Otherwise the facts of a long
//! listing would expire while it is read, and its names would be asked for one by one.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use crate::known_attributes::KnownAttributes;
use crate::names::{Listed, Named, PAGE_KEYS};

/// What a name stood for.
#[derive(Debug, Clone)]
pub struct Fact {
    /// When the request was sent that showed it.
    pub at: Instant,
    /// `None` where there was nothing.
    pub listed: Option<Listed>,
}

/// What became of a name after a listing's page that shows it was asked for.
#[derive(Debug, Clone)]
pub enum Since {
    /// Nothing that is known.
    Same,
    /// It stands for something else.
    Other(Listed, Instant),
    /// It went, and the mount made it anew: it stands behind the last page.
    AtEnd,
    /// It went.
    Went,
}

/// The listings of a folder that are open: when each began, by its handle.
#[derive(Debug, Default)]
pub struct OpenListings(HashMap<u64, Instant>);

impl OpenListings {
    /// A listing that began then is open.
    pub fn opened(&mut self, handle: u64, began: Instant) {
        self.0.insert(handle, began);
    }

    /// It is closed.
    pub fn closed(&mut self, handle: u64) {
        self.0.remove(&handle);
    }

    /// When the one began that is open for longest.
    fn oldest(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }
}

/// Where a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// A page of a listing: what is not known of a name says nothing of what it stood for before.
    OnPage,
    /// A call that made, changed or looked for this name.
    ByCall,
}

/// What is known of names.
#[derive(Debug, Default)]
struct Facts {
    by_name: HashMap<Box<str>, Fact>,
    /// When a name came to stand for something else, at the latest: what a page shows that was
    /// asked for after that is still so.
    changed_at: Option<Instant>,
}

impl Facts {
    /// Takes a fact, unless a younger one is known.
    fn take(&mut self, name: &str, fact: Fact, shown: Shown) {
        let at = fact.at;
        let is_other = match self.by_name.get_mut(name) {
            Some(old) if old.at > fact.at => false,
            Some(old) if old.at == fact.at && matches!(old.listed, Some(Listed::Folder)) => false,
            Some(old) => {
                let is_other = old.listed != fact.listed;
                *old = fact;
                is_other
            }
            None => {
                self.by_name.insert(name.into(), fact);
                shown == Shown::ByCall
            }
        };
        if is_other {
            self.changed(at);
        }
    }

    fn changed(&mut self, at: Instant) {
        self.changed_at = self.changed_at.max(Some(at));
    }
}

/// How many names of a large folder were asked for one by one. If there are many, the folder is
/// listed whole instead: after that names cost nothing for a time to live.
#[derive(Debug, Default)]
pub struct AskedAlone {
    since: Option<Instant>,
    count: usize,
    /// That a listing found; none before there was one.
    names: usize,
    /// A listing takes too long to be of use.
    pub is_slow: bool,
}

impl AskedAlone {
    /// One name more is to be asked for. Answers how many pages a listing of the whole folder may
    /// take, if it costs no more requests than the names that were asked for within the last `ttl`.
    pub fn pages_for(&mut self, ttl: Duration) -> Option<usize> {
        if self.since.is_none_or(|since| since.elapsed() >= ttl) {
            (self.since, self.count) = (Some(Instant::now()), 0);
        }
        self.count += 1;
        let pages = self.names.div_ceil(usize::from(PAGE_KEYS));
        let is_worth = pages > 0 && self.count > pages && !self.is_slow;
        // It may have grown, and a few pages are asked for in vain.
        is_worth.then_some(2 * pages + 4)
    }

    /// A listing found so many names, or more.
    pub fn listed(&mut self, names: usize) {
        (self.since, self.names) = (None, names);
    }
}

/// What is known of a folder's names.
#[derive(Debug, Default)]
pub struct Folder {
    facts: Facts,
    /// By the handles of those who read the folder: when the listing began, and until when what it
    /// showed is believed.
    readings: HashMap<u64, (Instant, Instant)>,
    /// Their pages may show what went since.
    pub open_listings: OpenListings,
    /// When the last listing began that was read to its end.
    complete_at: Option<Instant>,
    /// Its first page was not its last: names are asked for one by one.
    pub is_large: bool,
    /// Since it is large.
    pub asked_alone: AskedAlone,
    /// Names of which the store may have nothing: files that were not published yet, folders that
    /// were emptied here.
    pub own: HashMap<Box<str>, Listed>,
    /// Of folders among those: since when the store may have nothing of them.
    emptied: HashMap<Box<str>, Instant>,
    /// Modes, owners, times and so on of the names in it.
    pub attributes: KnownAttributes,
    /// When this mount changed a name in it.
    pub modified: Option<SystemTime>,
}
impl Folder {
    /// The names that are no objects are those of the attributes.
    pub fn own_specials(&mut self) {
        self.own
            .retain(|_, listed| !matches!(listed, Listed::Special(_)));
        self.own.extend(self.attributes.specials());
    }

    /// What is known of a name, if that is not older than `ttl`: `Some(None)` is that there is
    /// nothing.
    pub fn known(&self, name: &str, ttl: Duration) -> Option<(Option<Listed>, Instant)> {
        if let Some(listed) = self.own.get(name) {
            return Some((Some(listed.clone()), Instant::now()));
        }
        if let Some(fact) = self.facts.by_name.get(name)
            && self.is_believed(fact.at, ttl)
        {
            return Some((fact.listed.clone(), fact.at));
        }
        let complete_at = self.complete_at.filter(|at| at.elapsed() < ttl)?;
        Some((None, complete_at))
    }

    /// What became of a name that was seen as `then` at `at`, on a page that has the mount's own
    /// names, too, or not.
    pub fn since(&self, name: &str, then: &Listed, at: Instant, has_own: bool) -> Since {
        if self.own.is_empty() && self.facts.changed_at.is_none_or(|changed| changed <= at) {
            return Since::Same;
        }
        let fact = self.facts.by_name.get(name).filter(|fact| fact.at > at);
        let seen = fact.map(|fact| (fact.listed.as_ref(), fact.at));
        match (self.own.get(name), seen) {
            (Some(own), _) if has_own && own != then => Since::Other(own.clone(), Instant::now()),
            (Some(_), Some((None, _))) if !has_own => Since::AtEnd,
            (Some(_), _) | (None, None) => Since::Same,
            (None, Some((None, _))) => Since::Went,
            (None, Some((Some(listed), _))) if listed == then => Since::Same,
            (None, Some((Some(listed), at))) => Since::Other(listed.clone(), at),
        }
    }

    /// All names, if a whole listing is not older than `ttl`, and when it was asked for; in no
    /// order.
    pub fn known_whole(&self, ttl: Duration) -> Option<(Vec<Named>, Instant)> {
        let at = self.complete_at.filter(|at| at.elapsed() < ttl)?;
        let facts = self.facts.by_name.iter();
        let facts = facts.filter(|(name, _)| !self.own.contains_key(*name));
        let there = facts.filter_map(|(name, fact)| Some((name.clone(), fact.listed.clone()?)));
        Some((there.chain(copies(self.own.iter())).collect(), at))
    }

    /// Names that a listing's pages do not show: the mount's own names, and what became of those
    /// that were its own earlier and were `left` out of the pages.
    pub fn unlisted(&self, left: &HashSet<Box<str>>) -> Vec<Named> {
        let own = self.own.iter().filter(|(name, _)| self.lacks(name));
        let mut unlisted: HashMap<_, _> = copies(own).collect();
        for name in left {
            let fact = self
                .facts
                .by_name
                .get(name)
                .and_then(|fact| fact.listed.as_ref());
            if let Some(listed) = self.own.get(name).or(fact) {
                unlisted.insert(name.clone(), listed.clone());
            }
        }
        unlisted.into_iter().collect()
    }

    /// The names of folders in it, as far as they are known; in no order.
    pub fn folders(&self) -> impl Iterator<Item = Box<str>> {
        let facts = self.facts.by_name.iter();
        let folders = facts.filter(|(_, fact)| matches!(fact.listed, Some(Listed::Folder)));
        folders.map(|(name, _)| name.clone())
    }

    /// Takes a fact, unless a younger one is known. A folder hides an object of its name, however
    /// they come.
    pub fn learn(&mut self, name: &str, fact: Fact, shown: Shown) {
        if let (Some(Listed::Folder), Some(since)) = (&fact.listed, self.emptied.get(name)) {
            // The store has something of it: if that goes, somebody else has removed it.
            if fact.at > *since {
                self.let_go(name);
            }
        }
        self.facts.take(name, fact, shown);
    }

    /// The store may have nothing of a folder from now on, which stays all the same.
    pub fn keep_folder(&mut self, name: &str) {
        self.own.insert(name.into(), Listed::Folder);
        self.emptied.insert(name.into(), Instant::now());
    }

    /// A folder is there only if the store has something of it.
    pub fn let_go(&mut self, name: &str) {
        self.emptied.remove(name);
        if self.own.get(name) == Some(&Listed::Folder) {
            self.own.remove(name);
        }
    }

    /// Whether a file in it waits to be published.
    pub fn has_own_files(&self) -> bool {
        let is_file = |listed: &Listed| matches!(listed, Listed::File(_));
        self.own.values().any(is_file)
    }

    /// Whether this mount made something in it, or emptied a folder in it, that only this mount
    /// knows: but for names that attributes alone make.
    pub fn has_own_objects(&self) -> bool {
        let is_special = |listed: &Listed| matches!(listed, Listed::Special(_));
        !self.own.values().all(is_special)
    }

    /// Drops what is known of a name.
    pub fn forget(&mut self, name: &str) {
        self.facts.by_name.remove(name);
        self.facts.changed(Instant::now());
        self.complete_at = None;
    }

    /// Whether no fact says that there is something of this name.
    pub fn lacks(&self, name: &str) -> bool {
        let fact = self.facts.by_name.get(name);
        fact.is_none_or(|fact| fact.listed.is_none())
    }

    /// A listing that began at `at` was read to its end: what it did not show is gone.
    pub fn complete(&mut self, at: Instant) {
        let (oldest, count) = (self.open_listings.oldest(), self.facts.by_name.len());
        self.facts.by_name.retain(|_, fact| {
            let is_told = oldest.is_none_or(|oldest| fact.at < oldest);
            fact.at >= at || (fact.listed.is_none() && !is_told)
        });
        if self.facts.by_name.len() < count {
            self.facts.changed(Instant::now());
        }
        self.asked_alone.listed(self.facts.by_name.len());
        self.complete_at = Some(at);
    }

    /// Whether something is known that the store does not have.
    pub fn is_kept(&self) -> bool {
        let has_own = |listed: &Listed| !matches!(listed, Listed::Special(_));
        self.own.values().any(has_own) || self.attributes.is_changed()
    }

    /// No listing tells any more which names there are not.
    pub fn forget_whole(&mut self) {
        self.complete_at = None;
    }

    /// A program reads a listing that began then.
    pub fn read_by(&mut self, handle: u64, began: Instant, ttl: Duration) {
        let now = Instant::now();
        self.readings.retain(|_, (_, until)| *until > now);
        self.readings.insert(handle, (began, now + ttl));
        self.open_listings.opened(handle, began);
    }

    /// For how long what was seen at `at` is believed from now on.
    pub fn valid(&self, at: Instant, ttl: Duration) -> Duration {
        let readings = self.readings.values().filter(|(began, _)| *began <= at);
        let until = readings.map(|(_, until)| *until).max();
        let read = until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        });
        read.max(ttl.saturating_sub(at.elapsed()))
    }

    /// Whether it is believed at all.
    pub fn is_believed(&self, at: Instant, ttl: Duration) -> bool {
        !self.valid(at, ttl).is_zero()
    }

    /// Drops facts that nobody believes any more, and that no open listing needs.
    pub fn sweep(&mut self, ttl: Duration) {
        let mut facts = std::mem::take(&mut self.facts.by_name);
        let oldest = self.open_listings.oldest();
        let is_needed = |at| oldest.is_some_and(|oldest| at >= oldest);
        facts.retain(|_, fact| self.is_believed(fact.at, ttl) || is_needed(fact.at));
        self.facts.by_name = facts;
    }
}

fn copies<'a>(
    names: impl Iterator<Item = (&'a Box<str>, &'a Listed)>,
) -> impl Iterator<Item = Named> {
    names.map(|(name, listed)| (name.clone(), listed.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute_object::Special;

    /// Names are learned from pages and from calls; the answer is that of the names' own facts,
    /// however it is found.
    #[test]
    fn what_became_of_a_name_is_known_though_later_pages_came() {
        let began = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let moment = |ms| began + Duration::from_millis(ms);
        let fact = |ms, listed| Fact {
            at: moment(ms),
            listed,
        };
        let mut folder = Folder::default();
        let since =
            |folder: &Folder, name: &str| folder.since(name, &Listed::Folder, moment(1), false);
        folder.learn("a", fact(1, Some(Listed::Folder)), Shown::OnPage);
        folder.learn("b", fact(1, Some(Listed::Folder)), Shown::OnPage);
        folder.learn("z", fact(2, Some(Listed::Folder)), Shown::OnPage);
        assert!(matches!(since(&folder, "a"), Since::Same));
        folder.learn("a", fact(3, None), Shown::ByCall);
        assert!(matches!(since(&folder, "a"), Since::Went));
        assert!(matches!(since(&folder, "b"), Since::Same));
        // What is forgotten is learned anew, by whoever lists the folder meanwhile.
        let mut folder = Folder::default();
        folder.learn("a", fact(1, Some(Listed::Folder)), Shown::OnPage);
        folder.forget("a");
        let other = Listed::Special(Special::Fifo);
        folder.learn("a", fact(2000, Some(other)), Shown::OnPage);
        assert!(matches!(since(&folder, "a"), Since::Other(..)));
    }
}
