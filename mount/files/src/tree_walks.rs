// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A walk: a program that reads a whole tree opens the folders of a folder one after the other, in
//! their order. When that is seen, all keys below the folder are listed flat, without groups, and
//! each folder's names are taken from this listing. One request then brings a thousand files, in
//! however many folders they lie. [`crate::folders`] asks here before it lists a folder by itself.
//!
//! Opening the first subfolder of a folder that was just listed begins a walk, at the price of the
//! listing that it replaces and of one page behind it, which comes at the same time. With the
//! second subfolder several pages are asked for at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use weft_store::{ObjectInfo, Store, StoreError};

use crate::listing::Pages;
use crate::names::{self, ATTRIBUTES, Listed, Named};
use crate::tiling::Start;

/// Chosen: trees that are walked at once; the one that was asked least recently is let go.
const WALKS: usize = 16;
/// Chosen: how long a walk is kept that nobody asks, unless its names are believed for longer.
const IDLE: Duration = Duration::from_secs(60);
/// Chosen: pages that are read for one folder before it is listed by itself.
const PATIENCE_PAGES: usize = 4;
/// Chosen: names of folders that nobody opened; a walk that leaves so many out is none.
const UNOPENED_NAMES: usize = 100_000;

/// What a walk found of one folder.
pub struct Whole {
    /// Its names.
    pub names: Vec<Named>,
    /// When the oldest page of them was asked for.
    pub at: Instant,
    /// Its attribute object.
    pub attributes: Option<ObjectInfo>,
}

impl Whole {
    fn new(at: Instant) -> Self {
        Self {
            names: Vec::new(),
            at,
            attributes: None,
        }
    }
}

/// A walk, for whoever reads its next page.
type Shared = Arc<tokio::sync::Mutex<Walk>>;

/// The walks of a mount.
#[derive(Default)]
pub struct Walks {
    all: Mutex<HashMap<String, (Shared, Instant)>>,
}

impl Walks {
    /// Lets go of the walks that nobody asked for a while before `now`.
    pub fn forget(&self, ttl: Duration, now: Instant) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (_, used)| now.saturating_duration_since(*used) < ttl.max(IDLE));
    }

    /// A folder was listed whole: `folders` are the names of the folders in it, in order.
    pub fn note(&self, prefix: &str, folders: impl Iterator<Item = Box<str>>) {
        let mut folders: Vec<String> = folders.map(|name| format!("{prefix}{name}/")).collect();
        if folders.len() < 2 {
            return;
        }
        folders.sort_unstable();
        let walk = Arc::new(tokio::sync::Mutex::new(Walk::new(prefix, folders)));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(prefix.to_owned(), (walk, Instant::now()));
        if all.len() > WALKS {
            let oldest = all.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(prefix, _)| prefix.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
    }

    /// The names of a folder, if a walk has them, no older than `ttl`.
    ///
    /// # Errors
    /// What the store said of a page.
    pub async fn take(
        &self,
        prefix: &str,
        store: &Arc<dyn Store>,
        runtime: &Handle,
        ttl: Duration,
    ) -> Result<Option<Whole>, StoreError> {
        let Some((above, walk)) = self.find(prefix) else {
            return Ok(None);
        };
        let taken = walk.lock().await.take(prefix, store, runtime).await;
        if !matches!(taken, Ok(Some(_))) {
            // What is not walked over is listed as before.
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            if all
                .get(&above)
                .is_some_and(|(known, _)| Arc::ptr_eq(known, &walk))
            {
                all.remove(&above);
            }
        }
        Ok(taken?.filter(|whole| whole.at.elapsed() < ttl))
    }

    /// The walk of the nearest folder above.
    fn find(&self, prefix: &str) -> Option<(String, Shared)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut above = prefix;
        loop {
            let parent = above.strip_suffix('/')?;
            above = &above[..parent.rfind('/').map_or(0, |at| at + 1)];
            if let Some((walk, used)) = all.get_mut(above) {
                *used = Instant::now();
                return Some((above.to_owned(), Arc::clone(walk)));
            }
        }
    }
}

/// One walk: a flat listing, and the folders that came.
struct Walk {
    prefix: String,
    /// Whole prefixes of the folders in it, in order.
    folders: Arc<Vec<String>>,
    /// The one that a walk would open next.
    expected: usize,
    pages: Option<Pages>,
    /// Folders whose names came in part: each in the one before.
    open: Vec<(String, Whole)>,
    /// Folders whose names all came, and that nobody took yet.
    whole: HashMap<String, Whole>,
    whole_names: usize,
    /// All keys came.
    is_done: bool,
}

impl Walk {
    fn new(prefix: &str, folders: Vec<String>) -> Self {
        Self {
            prefix: prefix.to_owned(),
            folders: Arc::new(folders),
            expected: 0,
            pages: None,
            open: Vec::new(),
            whole: HashMap::new(),
            whole_names: 0,
            is_done: false,
        }
    }

    async fn take(
        &mut self,
        prefix: &str,
        store: &Arc<dyn Store>,
        runtime: &Handle,
    ) -> Result<Option<Whole>, StoreError> {
        if let Ok(at) = self
            .folders
            .binary_search_by(|folder| (**folder).cmp(prefix))
        {
            if self.pages.is_none() {
                // Only who begins at the beginning walks.
                if at != self.expected {
                    return Ok(None);
                }
                let start = Start {
                    after: Some(prefix.to_owned()),
                    token: None,
                };
                let pages = Pages::new(self.prefix.clone(), false, start);
                let mut pages = pages.below(Arc::clone(&self.folders));
                pages.set_narrow(true);
                self.pages = Some(pages);
                let whole = Whole::new(Instant::now());
                self.open.push((prefix.to_owned(), whole));
            } else if let Some(pages) = &mut self.pages {
                pages.set_narrow(false);
            }
            self.expected = at + 1;
        }
        for _ in 0..PATIENCE_PAGES {
            if let Some(whole) = self.whole.remove(prefix) {
                self.whole_names -= whole.names.len();
                return Ok(Some(whole));
            }
            let is_ahead = self
                .open
                .first()
                .is_none_or(|(first, _)| **first <= *prefix);
            if self.is_done || !is_ahead || self.whole_names > UNOPENED_NAMES {
                return Ok(None);
            }
            let Some(pages) = &mut self.pages else {
                return Ok(None);
            };
            match pages.next(store, runtime).await? {
                Some((page, at, is_last)) => {
                    let read_to = pages.read_to().map(str::to_owned);
                    for (key, info) in page.objects {
                        self.add(&key, info, at);
                    }
                    if is_last {
                        self.end();
                    } else if let Some(key) = read_to {
                        self.close(&key);
                    }
                }
                None => self.end(),
            }
        }
        Ok(self
            .whole
            .remove(prefix)
            .inspect(|whole| self.whole_names -= whole.names.len()))
    }

    fn end(&mut self) {
        self.is_done = true;
        self.close("");
    }

    /// Folders that `key` is not in are whole.
    fn close(&mut self, key: &str) {
        while let Some((prefix, _)) = self.open.last() {
            if !key.is_empty() && key.starts_with(&**prefix) {
                return;
            }
            if let Some((prefix, whole)) = self.open.pop() {
                self.whole_names += whole.names.len();
                self.whole.insert(prefix, whole);
            }
        }
    }

    /// Takes one key, which comes after all keys before.
    fn add(&mut self, key: &str, info: ObjectInfo, at: Instant) {
        self.close(key);
        let above = match self.open.last() {
            Some((prefix, _)) => prefix.len(),
            None => self.prefix.len(),
        };
        let mut begin = above;
        while let Some(end) = key[begin..].find('/') {
            let name = &key[begin..begin + end];
            if names::check(name).is_err() {
                return;
            }
            self.name(name.into(), Listed::Folder, at);
            begin += end + 1;
            self.open.push((key[..begin].to_owned(), Whole::new(at)));
        }
        let name = &key[begin..];
        if name == ATTRIBUTES {
            if let Some((_, whole)) = self.open.last_mut() {
                whole.at = whole.at.min(at);
                whole.attributes = Some(info);
            }
            return;
        }
        if names::check(name).is_ok() && begin > self.prefix.len() {
            self.name(name.into(), Listed::File(info), at);
        }
    }

    /// One name more of the folder that is open. A folder hides the object of its name.
    fn name(&mut self, name: Box<str>, listed: Listed, at: Instant) {
        if let Some((_, whole)) = self.open.last_mut() {
            whole.at = whole.at.min(at);
            whole.names.push((name, listed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_that_nobody_asks_are_forgotten() {
        let (hour, ttl) = (Duration::from_secs(3600), Duration::from_secs(1));
        let walks = Walks::default();
        walks.note("d/", ["a", "b"].into_iter().map(Into::into));
        let noted = Instant::now();
        walks.forget(ttl, noted + IDLE / 2);
        assert!(walks.find("d/a/").is_some());
        walks.forget(hour, noted + hour / 2);
        assert!(walks.find("d/a/").is_some());
        walks.forget(ttl, Instant::now() + IDLE);
        assert!(walks.find("d/a/").is_none());
    }
}
