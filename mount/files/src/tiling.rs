// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decides which pages of a listing to ask for at once. Pure: no requests, no clocks.
//! [`crate::listing`] sends the requests and hands in the answers.
//!
//! The listing is a row of stretches, each from one key up to another. A stretch is open, asked
//! for, here, or failed early. When a page comes, it may end before its stretch does; the rest then
//! becomes a new stretch. An open stretch is cut where [`crate::guess`] expects pages to end.
//!
//! While it is not known whether keys follow an open stretch, only two pages are asked for: the
//! next one, and one further ahead, to see how far the keys reach. The second one goes four times
//! as far each time, and a third of the way if it found nothing. So few requests find nothing.
//! Below folders that are known there are keys up to the last one. How many folders a page has is
//! not known before a page was mostly of others than it began in, or one behind the first folder
//! was mostly of that one; until then one page is asked for. But a walk begins with two: the first
//! folder by itself, whose last page says so, and what follows it.

use std::collections::VecDeque;
use std::sync::Arc;

use weft_store::Page;

use crate::guess::{Folders, Guess, Names};

/// Chosen: more requests at once gain nothing at 30 ms and the speed of one processor.
const ASKED_LIMIT: usize = 24;
/// Chosen: pages that lie ready before their reader: 48,000 names, some megabytes.
const READY_LIMIT: usize = 48;
/// Chosen: how much farther the second look ahead is than the first.
const STRIDE_FACTOR: u128 = 4;
/// Measured: where a look ahead found nothing, the next one goes so many parts of the way. With 2
/// more of them find nothing (106 requests for 100 pages of numbered keys, and 104 with 3), with 4
/// the listing reaches its end later.
const BACK_PARTS: u128 = 3;
/// Chosen: a stretch has so many of a thousand parts of a page where names are scattered, so that
/// most have no second page.
const SCATTERED_SHARE: u128 = 940;

/// Where a stretch begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// Behind this key; at the first one where there is none.
    pub after: Option<String>,
    /// The store's own word for it, where a page ended there.
    pub token: Option<String>,
}

/// A page is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// To be given back with the page.
    pub id: u64,
    /// From where.
    pub start: Start,
    /// Only below this prefix, where that is nearer than the listing's own.
    pub folder: Option<String>,
}

#[derive(Debug)]
enum State<T> {
    Open,
    /// The request failed before anybody wanted the page: it is asked for once more by who does.
    Failed,
    Asked(u64),
    Here(Page, T),
}

#[derive(Debug)]
struct Stretch<T> {
    start: Start,
    /// The last key of it; to the end where there is none.
    up_to: Option<String>,
    /// All its keys are below this one.
    folder: Option<String>,
    state: State<T>,
    /// There are keys at its end or behind.
    is_certain: bool,
    /// It was asked for to see whether there are keys.
    is_probe: bool,
}

/// The pages of one listing. `T` is what a caller keeps with each page.
#[derive(Debug)]
pub struct Tiling<T> {
    stretches: VecDeque<Stretch<T>>,
    guess: Option<Guess>,
    /// Of a page, in the guess's numbers; of folders, 0 until it was measured.
    page_value: u128,
    stride: u128,
    next_id: u64,
    /// Only one page after the other.
    is_narrow: bool,
    /// So many are asked for even so.
    early_count: usize,
    /// Nothing is guessed: the store does not list from the middle.
    is_plain: bool,
    folders: Option<Arc<Vec<String>>>,
}

impl<T> Tiling<T> {
    /// From `start` to the end.
    pub fn new(start: Start) -> Self {
        Self {
            stretches: VecDeque::from([Stretch::open(start, None)]),
            guess: None,
            page_value: 1,
            stride: STRIDE_FACTOR,
            next_id: 0,
            is_narrow: false,
            early_count: 0,
            is_plain: false,
            folders: None,
        }
    }

    /// Below folders that are known: whole prefixes, in order.
    pub fn below(mut self, folders: Arc<Vec<String>>) -> Self {
        self.folders = Some(folders);
        self.page_value = 0;
        self
    }

    /// With the first of these folders by itself, and what follows it at the same time.
    pub fn first_apart(mut self) -> Self {
        let folders = self.folders.as_deref().map_or(&[][..], Vec::as_slice);
        let [first, second, ..] = folders else {
            return self;
        };
        // Behind all keys of the first folder, but before an object that is the second one alone.
        let behind_first = format!("{}0", without_slash(first));
        let after = behind_first.max(without_slash(second).to_owned());
        let mut apart = Stretch::open(Start::behind(first), Some(after.clone()));
        apart.folder = Some(first.clone());
        self.stretches = VecDeque::from([apart, Stretch::open(Start::behind(&after), None)]);
        self.early_count = 2;
        self
    }

    /// For a store that does not list from the middle: one token after the other.
    pub fn plain(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Whether one page is asked for after the other, from now on.
    pub fn set_narrow(&mut self, is_narrow: bool) {
        self.is_narrow = is_narrow;
    }

    /// The next page to ask for now, if there is one.
    pub fn ask(&mut self) -> Option<Ask> {
        if let Some(front) = self.stretches.front_mut()
            && matches!(front.state, State::Failed)
        {
            front.state = State::Open;
        }
        let asked = |stretch: &&Stretch<T>| matches!(stretch.state, State::Asked(_));
        let asked_count = self.stretches.iter().filter(asked).count();
        let is_open = |stretch: &Stretch<T>| matches!(stretch.state, State::Open);
        if self.early_count > 0 {
            self.early_count -= 1;
            let at = self.stretches.iter().position(is_open)?;
            return Some(self.ask_for(at));
        }
        if self.is_narrow {
            return self.is_front_open().then(|| self.ask_for(0));
        }
        let limit = if self.asks_one() { 1 } else { ASKED_LIMIT };
        if asked_count >= limit && !(self.asks_one() && self.is_front_open()) {
            return None;
        }
        if !self.stretches.iter().any(|stretch| stretch.is_probe) {
            let is_unsure = |stretch: &Stretch<T>| is_open(stretch) && !stretch.is_certain;
            let unsure = self.stretches.iter().position(is_unsure);
            if let Some(probe) = unsure.and_then(|at| self.cut_for_probe(at)) {
                return Some(self.ask_for(probe));
            }
        }
        let at = self.stretches.iter().position(is_open)?;
        if at >= READY_LIMIT {
            return None;
        }
        if self.stretches[at].is_certain {
            self.cut(at, self.page_value);
        }
        Some(self.ask_for(at))
    }

    fn is_front_open(&self) -> bool {
        let front = self.stretches.front();
        front.is_some_and(|front| matches!(front.state, State::Open))
    }

    /// Whether nothing may be asked for behind a guess.
    fn asks_one(&self) -> bool {
        self.is_narrow || self.page_value == 0
    }

    fn ask_for(&mut self, at: usize) -> Ask {
        self.next_id += 1;
        let stretch = &mut self.stretches[at];
        stretch.state = State::Asked(self.next_id);
        Ask {
            id: self.next_id,
            start: stretch.start.clone(),
            folder: stretch.folder.clone(),
        }
    }

    /// Cuts a stretch of which it is not known how far keys reach. Answers where the second part
    /// stands, with which that is found out.
    fn cut_for_probe(&mut self, at: usize) -> Option<usize> {
        let stretch = &self.stretches[at];
        let guess = self.guess.as_ref().filter(|_| !self.asks_one())?;
        let value = guess.value(stretch.start.after.as_ref()?)?;
        // There are keys in the last folder, so all pages before it may be asked for.
        let last = self.folders.as_ref().filter(|_| stretch.up_to.is_none());
        let until_last = last.map_or(0, |all| (all.len() as u128).saturating_sub(1 + value));
        let pages = match &stretch.up_to {
            Some(end) => {
                let left = guess.value(end)?.saturating_sub(value);
                left / self.page_value / BACK_PARTS
            }
            None => self.stride,
        };
        if until_last > 0 && self.cut(at, until_last) {
            self.stretches[at].is_certain = true;
            return None;
        }
        if !self.cut(at, pages.saturating_mul(self.page_value)) {
            // Beyond all keys that can be: nearer, next time.
            self.stride = (self.stride / 2).max(1);
            return None;
        }
        self.stretches[at + 1].is_probe = true;
        Some(at + 1)
    }

    /// Cuts an open stretch so far behind its start; answers whether that is inside of it.
    fn cut(&mut self, at: usize, distance: u128) -> bool {
        let stretch = &self.stretches[at];
        let (Some(guess), Some(after)) = (&self.guess, &stretch.start.after) else {
            return false;
        };
        let key = guess
            .value(after)
            .and_then(|value| guess.key(value.checked_add(distance)?));
        let end = stretch.up_to.as_ref();
        let key = key.filter(|_| !self.is_plain);
        let key = key.filter(|key| *key > *after && end.is_none_or(|end| key < end));
        let Some(key) = key.filter(|_| !self.asks_one()) else {
            return false;
        };
        let mut rest = Stretch::open(Start::behind(&key), stretch.up_to.clone());
        rest.is_certain = stretch.is_certain;
        rest.folder = stretch.folder.clone();
        self.stretches[at].up_to = Some(key);
        self.stretches.insert(at + 1, rest);
        true
    }

    /// A page came that was asked for under `id`. Answers false if the store does not do what it
    /// was asked for: then the listing must begin anew, without guesses.
    pub fn came(&mut self, id: u64, page: Page, with: T) -> bool {
        let Some(at) = self.position_of(id) else {
            return true;
        };
        let Some((first, last)) = ends(&page) else {
            self.nothing_came(at, page, with);
            return true;
        };
        let stretch = &mut self.stretches[at];
        let start = stretch.start.clone();
        let is_from_middle = start.token.is_none() && !self.is_plain;
        if is_from_middle && start.after.as_ref().is_some_and(|after| first <= *after) {
            return false;
        }
        let was_probe = std::mem::take(&mut stretch.is_probe);
        let up_to = stretch.up_to.clone();
        let is_whole = up_to.as_ref().is_some_and(|end| last >= *end);
        let is_here = |stretch: &Stretch<T>| matches!(stretch.state, State::Here(..));
        let folder = stretch.folder.clone();
        let is_last = page.next.is_none() && folder.is_none();
        let is_end = is_last && !self.stretches.iter().skip(at + 1).any(is_here);
        if is_end {
            // All that is left came with this page.
            self.stretches.truncate(at + 1);
        } else if page.next.is_some() {
            if folder.is_none() {
                // Where pages of one folder end says nothing of others.
                self.learn(&page, &start, &last);
            }
            if !is_whole {
                let mut rest = Stretch::open(Start::behind(&last), up_to.clone());
                rest.start.token = page.next.clone();
                rest.is_certain = self.stretches[at].is_certain;
                rest.folder = folder;
                self.stretches.insert(at + 1, rest);
            }
        }
        let page = match &up_to {
            Some(end) if is_whole && !is_end => cut_page(page, end),
            _ => page,
        };
        self.stretches[at].state = State::Here(page, with);
        for before in self.stretches.iter_mut().take(at) {
            before.is_certain = true;
        }
        if was_probe {
            self.stride = self.stride.saturating_mul(STRIDE_FACTOR);
        }
        true
    }

    /// Nothing is behind the start of a stretch, unless the store says that more follows.
    fn nothing_came(&mut self, at: usize, page: Page, with: T) {
        let stretch = &mut self.stretches[at];
        stretch.is_probe = false;
        if page.next.is_some() {
            let mut rest = Stretch::open(stretch.start.clone(), stretch.up_to.clone());
            rest.start.token = page.next.clone();
            rest.is_certain = stretch.is_certain;
            rest.folder = stretch.folder.clone();
            stretch.state = State::Here(page, with);
            self.stretches.insert(at + 1, rest);
            return;
        }
        stretch.state = State::Here(page, with);
        if stretch.folder.is_some() {
            return;
        }
        // Those that did not come yet will not bring anything.
        let mut position = 0;
        self.stretches.retain(|stretch| {
            position += 1;
            position <= at + 1 || matches!(stretch.state, State::Here(..))
        });
    }

    /// Takes a page as the measure of those to come.
    fn learn(&mut self, page: &Page, start: &Start, last: &str) {
        let keys = keys(page);
        let known = self
            .guess
            .take()
            .filter(|guess| guess.value(last).is_some());
        self.guess = match &self.folders {
            Some(folders) => Folders::of(folders, last).map(Guess::Folders),
            None => known.or_else(|| Names::of(&keys).map(Guess::Names)),
        };
        let Some(guess) = &self.guess else { return };
        let first = start.after.as_deref().unwrap_or(keys[0]);
        let values = guess.value(first).zip(guess.value(last));
        let distance = values.map_or(0, |(from, to)| to.saturating_sub(from));
        let steps = keys.len() as u128 - u128::from(start.after.is_none());
        let page_value = match &self.folders {
            Some(folders) => folders_of(folders, first, &keys, self.page_value),
            None if steps > 0 && distance % steps == 0 => distance / steps * keys.len() as u128,
            None => distance * SCATTERED_SHARE / 1000,
        };
        if page_value > 0 {
            self.page_value = page_value;
        }
    }

    /// A request failed. Answers whether the reader waits for it; another one is done once more
    /// when the reader has come to it.
    pub fn failed(&mut self, id: u64) -> bool {
        let Some(at) = self.position_of(id) else {
            return false;
        };
        let stretch = &mut self.stretches[at];
        stretch.state = State::Failed;
        // Another look ahead may be nearer.
        stretch.is_probe = false;
        at == 0
    }

    fn position_of(&self, id: u64) -> Option<usize> {
        let is_it =
            |stretch: &Stretch<T>| matches!(stretch.state, State::Asked(asked) if asked == id);
        self.stretches.iter().position(is_it)
    }

    /// The key up to which all pages were taken, if that is known.
    pub fn taken_to(&self) -> Option<&str> {
        self.stretches.front()?.start.after.as_deref()
    }

    /// The first page, if it is here; and whether it is the last one.
    pub fn take(&mut self) -> Option<(Page, T, bool)> {
        if !matches!(self.stretches.front()?.state, State::Here(..)) {
            return None;
        }
        let State::Here(page, with) = self.stretches.pop_front()?.state else {
            return None;
        };
        Some((page, with, self.stretches.is_empty()))
    }

    /// Whether all pages were taken.
    pub fn is_done(&self) -> bool {
        self.stretches.is_empty()
    }
}

impl Start {
    fn behind(key: &str) -> Self {
        Self {
            after: Some(key.to_owned()),
            token: None,
        }
    }
}

impl<T> Stretch<T> {
    fn open(start: Start, up_to: Option<String>) -> Self {
        Self {
            start,
            up_to,
            folder: None,
            state: State::Open,
            is_certain: false,
            is_probe: false,
        }
    }
}

fn without_slash(folder: &str) -> &str {
    folder.strip_suffix('/').unwrap_or(folder)
}

/// How many folders a whole page has where most are like those of this page, which came behind
/// `first`; `known` or less if the page has too little of others than the one that it began in.
fn folders_of(folders: &[String], first: &str, keys: &[&str], known: u128) -> u128 {
    let count_to = |key: &str| folders.partition_point(|folder| **folder <= *key);
    let (begin, last) = (count_to(first), keys.last().copied().unwrap_or(first));
    let begun = begin.checked_sub(1).map(|at| &*folders[at]);
    let begun = begun.filter(|folder| first.starts_with(folder));
    let rests = keys.iter().map_while(|key| key.strip_prefix(begun?));
    let begun_keys = rests.clone().count();
    let (others, end) = (keys.len() - begun_keys, count_to(last));
    let is_mostly_begun = others * 2 < keys.len();
    if is_mostly_begun && begin > 1 && end <= begin + 1 {
        // Not the first folder alone fills half a page or more.
        return (known / 2).max(1);
    }
    if is_mostly_begun || end <= begin {
        return known;
    }
    let steps = end - begin;
    let last_folder = &*folders[end - 1];
    let in_last = keys.iter().rev();
    let in_last = in_last.take_while(|key| key.starts_with(last_folder));
    let in_last = in_last.count();
    let before_last = others - in_last;
    if before_last > 0 && in_last * (steps - 1) <= before_last {
        // The page may have a part of the last folder only, so that one does not count.
        return (((steps - 1) * keys.len() / before_last) as u128).max(1);
    }
    // The rest of the folder that it began in counts, but for no more than others do.
    let end_of_name = last.strip_prefix(last_folder).unwrap_or("");
    let rest = rests.filter(|rest| *rest > end_of_name).count();
    let mean = others / steps;
    // A folder that is much longer than others says nothing of them.
    let counted = others + if rest > 2 * mean { 0 } else { rest.min(mean) };
    ((steps * keys.len() / counted) as u128).max(1)
}

/// All keys of a page and the prefixes of its groups, in order.
fn keys(page: &Page) -> Vec<&str> {
    let objects = page.objects.iter().map(|(key, _)| &**key);
    let mut keys: Vec<&str> = objects
        .chain(page.folders.iter().map(|key| &**key))
        .collect();
    keys.sort_unstable();
    keys
}

/// The first and the last key or group.
fn ends(page: &Page) -> Option<(String, String)> {
    let keys = keys(page);
    Some(((*keys.first()?).to_owned(), (*keys.last()?).to_owned()))
}

/// Without what lies behind `end`.
fn cut_page(mut page: Page, end: &str) -> Page {
    page.objects.retain(|(key, _)| **key <= *end);
    page.folders.retain(|key| **key <= *end);
    page
}

#[cfg(test)]
#[path = "tiling_tests.rs"]
mod tests;
