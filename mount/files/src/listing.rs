// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open folder: its names in the order of the store's pages, each page asked for once, and the
//! next one while the last is read. [`crate::folders`] reads it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use weft_store::{ListRequest, Page, Store, StoreError};

use crate::fault::mount_ends;
use crate::names::{self, Listed, Named};
use crate::search::PAGE_KEYS;

/// Names of one page, with the moment at which it was asked for.
pub struct NamedPage {
    /// In the page's order.
    pub names: Vec<Named>,
    /// When the request was sent.
    pub at: Instant,
    /// Where its first name stands in the whole listing.
    first: usize,
}

/// Where an open folder's listing stands.
pub struct Listing {
    prefix: String,
    /// The last pages that were read; earlier ones are let go.
    pages: VecDeque<NamedPage>,
    next: Next,
    /// When the first page was asked for.
    pub began: Instant,
}

enum Next {
    /// Not asked for yet; the token of the page before.
    Unasked(Option<String>),
    /// Asked for with this token.
    Coming(
        Option<String>,
        JoinHandle<(Instant, Result<Page, StoreError>)>,
    ),
    Nothing,
}

/// What a page brought beside its names.
pub struct Arrived {
    /// Keys that are no names.
    pub nameless: usize,
    /// Nothing comes after it.
    pub is_last: bool,
}

impl Listing {
    /// Begins at the first name.
    pub fn new(prefix: String) -> Self {
        Self {
            prefix,
            pages: VecDeque::new(),
            next: Next::Unasked(None),
            began: Instant::now(),
        }
    }

    /// Of names that are known already.
    pub fn known(prefix: String, mut names: Vec<Named>, at: Instant) -> Self {
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let mut listing = Self::new(prefix);
        listing.pages.push_back(NamedPage {
            names,
            at,
            first: 0,
        });
        listing.next = Next::Nothing;
        listing
    }

    /// Whether the name at `index` was let go: a reader went back, and the listing begins anew.
    pub fn is_behind(&self, index: usize) -> bool {
        self.pages.front().is_some_and(|page| index < page.first)
    }

    /// Whether it is too old to begin it once more.
    pub fn is_stale(&self, ttl: Duration) -> bool {
        !self.pages.is_empty() && self.began.elapsed() >= ttl
    }

    /// The page that has the name at `index`, and where in it.
    pub fn find(&self, index: usize) -> Option<(&NamedPage, usize)> {
        let page = self
            .pages
            .iter()
            .find(|page| (page.first..page.first + page.names.len()).contains(&index))?;
        Some((page, index - page.first))
    }

    /// Whether all pages were read.
    pub fn is_whole(&self) -> bool {
        matches!(self.next, Next::Nothing)
    }

    /// Reads one page more, and asks for the one behind it.
    pub async fn advance(
        &mut self,
        store: &Arc<dyn Store>,
        runtime: &Handle,
    ) -> Result<Arrived, StoreError> {
        let (token, coming) = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Coming(token, task) => (token, task),
            Next::Unasked(token) => (token.clone(), self.ask(store, runtime, token)),
            Next::Nothing => (None, self.ask(store, runtime, None)),
        };
        // A page that fails is asked for again by who reads on.
        self.next = Next::Unasked(token);
        let (at, page) = coming.await.unwrap_or_else(|_| {
            let error = mount_ends("ListObjectsV2", &self.prefix);
            (Instant::now(), Err(error))
        });
        let page = page?;
        let (mut names, nameless) = names::of_page(&page, &self.prefix);
        // A folder hides the object of its name, which came on this page or on one before.
        names.sort_by(|a, b| {
            a.0.cmp(&b.0)
                .then((b.1 == Listed::Folder).cmp(&(a.1 == Listed::Folder)))
        });
        names.dedup_by(|b, a| a.0 == b.0);
        let first = self.end();
        self.pages.push_back(NamedPage { names, at, first });
        if self.pages.len() > 3 {
            self.pages.pop_front();
        }
        self.next = match &page.next {
            Some(token) => {
                let task = self.ask(store, runtime, Some(token.clone()));
                Next::Coming(Some(token.clone()), task)
            }
            None => Next::Nothing,
        };
        Ok(Arrived {
            nameless,
            is_last: page.next.is_none(),
        })
    }

    /// Names of which the store has nothing yet, behind the last page.
    pub fn add_own(&mut self, mut names: Vec<Named>) {
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let first = self.end();
        let at = Instant::now();
        self.pages.push_back(NamedPage { names, at, first });
    }

    fn end(&self) -> usize {
        self.pages
            .back()
            .map_or(0, |last| last.first + last.names.len())
    }

    /// The page that came last.
    pub fn last(&self) -> Option<&NamedPage> {
        self.pages.back()
    }

    fn ask(
        &self,
        store: &Arc<dyn Store>,
        runtime: &Handle,
        token: Option<String>,
    ) -> JoinHandle<(Instant, Result<Page, StoreError>)> {
        let store = Arc::clone(store);
        let request = ListRequest {
            prefix: self.prefix.clone(),
            by_folder: true,
            token,
            limit: PAGE_KEYS,
        };
        runtime.spawn(async move {
            let at = Instant::now();
            (at, store.list(&request).await)
        })
    }
}
